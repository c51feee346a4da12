// Searching, replacing and trimming strings.
#include <algorithm>

#include "jinja/characters.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// The bytes [begin, end) that optional start and end arguments leave of a string; nothing where start lies behind.
struct Window {
  size_t begin = 0, end = 0;
  bool valid = true;
};

Result<Window> window(const Call& call, size_t start_index) {
  const Text& text = call.subject.text();
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(text.bytes.size()));
  if (!call.given(start_index) && !call.given(start_index + 1)) return Window{0, text.bytes.size(), true};
  const Int size = static_cast<Int>(text.size_code_points());
  const auto settle = [size](Int bound) { return bound < 0 ? std::max<Int>(bound + size, 0) : bound; };
  QUIRE_ASSIGN_OR_RETURN(Int start, int_argument(call, start_index, 0, true));
  QUIRE_ASSIGN_OR_RETURN(Int end, int_argument(call, start_index + 1, size, true));
  start = settle(start);
  end = std::min(settle(end), size);
  if (start > end) return Window{0, 0, false};
  return Window{text.byte_offset_of(static_cast<size_t>(start)), text.byte_offset_of(static_cast<size_t>(end)), true};
}

Result<Value> matches_end(Call& call, bool at_start) {
  const char* name = at_start ? "startswith" : "endswith";
  QUIRE_ASSIGN_OR_RETURN(const Window range, window(call, 1));
  std::vector<Value> candidates;
  if (call.args[0].is(Kind::kTuple)) {
    candidates = call.args[0].sequence().items();
  } else {
    candidates.push_back(call.args[0]);
  }
  const std::string_view bytes =
      std::string_view(call.subject.text().bytes).substr(range.begin, range.end - range.begin);
  for (const Value& candidate : candidates) {
    if (!candidate.is(Kind::kString)) {
      return invalid_argument(std::string(name) + "() wants a string or a tuple of strings, not " +
                              quoted(type_name(candidate)));
    }
    const std::string& affix = candidate.text().bytes;
    if (range.valid && (at_start ? bytes.starts_with(affix) : bytes.ends_with(affix))) return Value::boolean(true);
  }
  return Value::boolean(false);
}

// Position in code points, or -1.
Result<Int> position(Call& call, std::string_view name, bool last) {
  QUIRE_ASSIGN_OR_RETURN(const Value needle, string_argument(call, 0, name));
  QUIRE_ASSIGN_OR_RETURN(const Window range, window(call, 1));
  if (!range.valid) return Int{-1};
  const std::string_view bytes =
      std::string_view(call.subject.text().bytes).substr(range.begin, range.end - range.begin);
  const size_t at = last ? bytes.rfind(needle.text().bytes) : bytes.find(needle.text().bytes);
  if (at == std::string_view::npos) return Int{-1};
  const std::string_view before = std::string_view(call.subject.text().bytes).substr(0, range.begin + at);
  return static_cast<Int>(count_code_points(before));
}

Result<Value> position_or_fail(Call& call, std::string_view name, bool last) {
  QUIRE_ASSIGN_OR_RETURN(const Int at, position(call, name, last));
  if (at < 0) return invalid_argument(std::string(name) + "(): substring not found");
  return Value::integer(at);
}

Result<Value> stripped(Call& call, bool left, bool right) {
  const Text& text = call.subject.text();
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(text.bytes.size()));
  std::u32string characters;
  const bool by_set = call.given_not_none(0);
  if (by_set) {
    QUIRE_ASSIGN_OR_RETURN(const Value set, string_argument(call, 0, "strip"));
    const std::string& bytes = set.text().bytes;
    for (size_t at = 0; at < bytes.size();) characters.push_back(next_code_point(bytes, at));
    std::sort(characters.begin(), characters.end());
  }
  const auto strips = [&](char32_t c) {
    return by_set ? std::binary_search(characters.begin(), characters.end(), c) : is_space(c);
  };
  size_t begin = 0, end = text.bytes.size();
  while (left && begin < end) {
    size_t after = begin;
    if (!strips(next_code_point(text.bytes, after))) break;
    begin = after;
  }
  while (right && end > begin) {
    const size_t before = previous_boundary(text.bytes, end);
    size_t at = before;
    if (!strips(next_code_point(text.bytes, at))) break;
    end = before;
  }
  if (begin == 0 && end == text.bytes.size()) return call.subject;
  return Value::string(call.heap(), sub_text(text, begin, end));
}

// Every position between two characters, at most `limit` of them.
void replace_empty(const Text& text, const Text& replacement, Int limit, TextBuilder& out) {
  size_t at = 0;
  for (Int done = 0; limit < 0 || done < limit; ++done) {
    out.append(replacement);
    if (at == text.bytes.size()) return;
    const size_t after = at + utf8_length(text.bytes[at]);
    out.append(text, at, after);
    at = after;
  }
  out.append(text, at, text.bytes.size());
}

}  // namespace

Result<Value> string_argument(const Call& call, size_t index, std::string_view function) {
  const Value& value = call.args[index];
  if (value.is(Kind::kString)) return value;
  return invalid_argument(std::string(function) + " wants a string, not " + quoted(type_name(value)));
}

Result<Int> int_argument(const Call& call, size_t index, Int absent, bool none_is_absent) {
  if (!call.given(index)) return absent;
  const Value& value = call.args[index];
  if (value.is(Kind::kNone) && none_is_absent) return absent;
  if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
  if (!value.is_integral()) {
    return invalid_argument("an integer is wanted, not " + quoted(type_name(value)));
  }
  return value.as_int();
}

Result<Value> starts_with(Call& call) { return matches_end(call, true); }
Result<Value> ends_with(Call& call) { return matches_end(call, false); }

Result<Value> find_text(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int at, position(call, "find", false));
  return Value::integer(at);
}

Result<Value> find_last_text(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int at, position(call, "rfind", true));
  return Value::integer(at);
}

Result<Value> index_text(Call& call) { return position_or_fail(call, "index", false); }
Result<Value> index_last_text(Call& call) { return position_or_fail(call, "rindex", true); }

Result<Value> count_text(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value needle_value, string_argument(call, 0, "count"));
  QUIRE_ASSIGN_OR_RETURN(const Window range, window(call, 1));
  const std::string_view bytes =
      std::string_view(call.subject.text().bytes).substr(range.begin, range.end - range.begin);
  const std::string& needle = needle_value.text().bytes;
  if (!range.valid) return Value::integer(0);
  if (needle.empty()) return Value::integer(static_cast<Int>(count_code_points(bytes)) + 1);
  Int count = 0;
  for (size_t at = bytes.find(needle); at != std::string_view::npos; at = bytes.find(needle, at + needle.size()))
    ++count;
  return Value::integer(count);
}

Result<Value> replace(Call& call) {
  const Text& text = call.subject.text();
  QUIRE_ASSIGN_OR_RETURN(const Value old_value, string_argument(call, 0, "replace"));
  QUIRE_ASSIGN_OR_RETURN(const Value new_value, string_argument(call, 1, "replace"));
  QUIRE_ASSIGN_OR_RETURN(const Int limit, int_argument(call, 2, -1));
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(text.bytes.size()));
  TextBuilder replacement;
  if (text.markup) {
    QUIRE_RETURN_IF_ERROR(append_escaped(call.runtime, new_value, replacement));
  } else {
    replacement.append(new_value.text());
  }
  const Text substitute = replacement.take();
  const std::string& old_bytes = old_value.text().bytes;
  TextBuilder out;
  if (old_bytes.empty()) {
    replace_empty(text, substitute, limit, out);
    return call.runtime.string(std::move(out), text.markup);
  }
  size_t at = 0;
  for (Int done = 0; limit < 0 || done < limit; ++done) {
    const size_t match = text.bytes.find(old_bytes, at);
    if (match == std::string::npos || out.overflowed() || call.runtime.meter().spent()) break;
    out.append(text, at, match);
    out.append(substitute);
    at = match + old_bytes.size();
  }
  out.append(text, at, text.bytes.size());
  return call.runtime.string(std::move(out), text.markup);
}

Result<Value> strip(Call& call) { return stripped(call, true, true); }
Result<Value> strip_left(Call& call) { return stripped(call, true, false); }
Result<Value> strip_right(Call& call) { return stripped(call, false, true); }

Result<Value> remove_prefix(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value prefix, string_argument(call, 0, "removeprefix"));
  const Text& text = call.subject.text();
  if (!text.bytes.starts_with(prefix.text().bytes)) return call.subject;
  return Value::string(call.heap(), sub_text(text, prefix.text().bytes.size(), text.bytes.size()));
}

Result<Value> remove_suffix(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value suffix, string_argument(call, 0, "removesuffix"));
  const Text& text = call.subject.text();
  if (!text.bytes.ends_with(suffix.text().bytes)) return call.subject;
  return Value::string(call.heap(), sub_text(text, 0, text.bytes.size() - suffix.text().bytes.size()));
}

}  // namespace quire::jinja
