// Searching, replacing, trimming and the case of strings.
#include <algorithm>

#include "jinja/characters.h"
#include "jinja/string_functions.h"

namespace quire::jinja {
namespace {

Result<Value> mapped(Call& call, Case how) {
  TextBuilder out;
  map_case(call.subject.text(), how, out, call.runtime.meter());
  return call.runtime.string(std::move(out));
}

Result<Value> matches_end(Call& call, bool at_start) {
  const std::string& bytes = call.subject.text().bytes;
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(bytes.size()));
  std::vector<Value> candidates;
  if (call.args[0].is(Kind::kTuple)) {
    candidates = call.args[0].sequence().items();
  } else {
    candidates.push_back(call.args[0]);
  }
  for (const Value& candidate : candidates) {
    if (!candidate.is(Kind::kString)) {
      return invalid_argument(std::string(at_start ? "startswith" : "endswith") +
                              "() wants a string or a tuple of strings, not " + quoted(type_name(candidate)));
    }
    const std::string& affix = candidate.text().bytes;
    if (at_start ? bytes.starts_with(affix) : bytes.ends_with(affix)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

// Position in code points, or -1.
Result<Value> position(Call& call, std::string_view name, bool last) {
  QUIRE_ASSIGN_OR_RETURN(const Value needle, string_argument(call, 0, name));
  const std::string_view bytes = call.subject.text().bytes;
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(bytes.size()));
  const size_t at = last ? bytes.rfind(needle.text().bytes) : bytes.find(needle.text().bytes);
  if (at == std::string_view::npos) return Value::integer(-1);
  return Value::integer(static_cast<Int>(count_code_points(bytes.substr(0, at))));
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

Result<Int> int_argument(const Call& call, size_t index, Int absent) {
  if (!call.given(index)) return absent;
  const Value& value = call.args[index];
  if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
  if (!value.is_integral()) {
    return invalid_argument("an integer is wanted, not " + quoted(type_name(value)));
  }
  return value.as_int();
}

Result<Value> upper(Call& call) { return mapped(call, Case::kUpper); }
Result<Value> lower(Call& call) { return mapped(call, Case::kLower); }
Result<Value> capitalize(Call& call) { return mapped(call, Case::kCapitalize); }
Result<Value> title(Call& call) { return mapped(call, Case::kTitle); }

Result<Value> starts_with(Call& call) { return matches_end(call, true); }
Result<Value> ends_with(Call& call) { return matches_end(call, false); }

Result<Value> find_text(Call& call) { return position(call, "find", false); }
Result<Value> find_last_text(Call& call) { return position(call, "rfind", true); }

Result<Value> count_text(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value needle_value, string_argument(call, 0, "count"));
  const std::string& bytes = call.subject.text().bytes;
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(bytes.size()));
  const std::string& needle = needle_value.text().bytes;
  if (needle.empty()) return Value::integer(static_cast<Int>(count_code_points(bytes)) + 1);
  Int count = 0;
  for (size_t at = bytes.find(needle); at != std::string::npos; at = bytes.find(needle, at + needle.size())) ++count;
  return Value::integer(count);
}

Result<Value> replace(Call& call) {
  const Text& text = call.subject.text();
  QUIRE_ASSIGN_OR_RETURN(const Value old_value, string_argument(call, 0, "replace"));
  QUIRE_ASSIGN_OR_RETURN(const Value new_value, string_argument(call, 1, "replace"));
  QUIRE_ASSIGN_OR_RETURN(const Int limit, int_argument(call, 2, -1));
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(text.bytes.size()));
  const std::string& old_bytes = old_value.text().bytes;
  TextBuilder out;
  if (old_bytes.empty()) {
    replace_empty(text, new_value.text(), limit, out);
    return call.runtime.string(std::move(out));
  }
  size_t at = 0;
  for (Int done = 0; limit < 0 || done < limit; ++done) {
    const size_t match = text.bytes.find(old_bytes, at);
    if (match == std::string::npos || out.overflowed() || call.runtime.meter().spent()) break;
    out.append(text, at, match);
    out.append(new_value.text());
    at = match + old_bytes.size();
  }
  out.append(text, at, text.bytes.size());
  return call.runtime.string(std::move(out));
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
