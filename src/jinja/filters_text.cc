// Filters that make strings.
#include <algorithm>

#include "jinja/attributes.h"
#include "jinja/characters.h"
#include "jinja/compare.h"
#include "jinja/filters.h"
#include "jinja/iteration.h"
#include "jinja/json.h"
#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// A method of strings as a filter: the subject is turned into a string first.
template <Result<Value> (*kMethod)(Call&)>
Result<Value> on_string(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(call.subject, soft_string(call.runtime, call.subject));
  return kMethod(call);
}

Result<Value> string_filter(Call& call) { return soft_string(call.runtime, call.subject); }

Result<Value> escape(Call& call) {
  TextBuilder out;
  QUIRE_RETURN_IF_ERROR(append_escaped(call.runtime, call.subject, out));
  return call.runtime.string(std::move(out), true);
}

Result<Value> safe(Call& call) {
  TextBuilder out;
  QUIRE_RETURN_IF_ERROR(append_str(call.runtime, call.subject, out));
  return call.runtime.string(std::move(out), true);
}

Result<Value> replace_filter(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(call.subject, to_string(call.runtime, call.subject));
  QUIRE_ASSIGN_OR_RETURN(call.args[0], to_string(call.runtime, call.args[0]));
  QUIRE_ASSIGN_OR_RETURN(call.args[1], to_string(call.runtime, call.args[1]));
  if (!call.given_not_none(2)) call.args[2] = Value();
  return replace(call);
}

bool begins_word_behind(char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c); }

Result<Value> title_filter(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value subject, soft_string(call.runtime, call.subject));
  const Text& text = subject.text();
  TextBuilder out;
  size_t begin = 0;
  bool separators = false;
  for (size_t at = 0; at < text.bytes.size() && !call.runtime.meter().spent();) {
    const size_t from = at;
    const bool separator = begins_word_behind(next_code_point(text.bytes, at));
    if (separator == separators) continue;
    map_word(text, begin, from, out, call.runtime.meter());
    begin = from;
    separators = separator;
  }
  map_word(text, begin, text.bytes.size(), out, call.runtime.meter());
  return call.runtime.string(std::move(out));
}

Result<Value> word_count(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value subject, soft_string(call.runtime, call.subject));
  const std::string& bytes = subject.text().bytes;
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(bytes.size()));
  Int count = 0;
  bool in_word = false;
  for (size_t at = 0; at < bytes.size() && !call.runtime.meter().spent();) {
    const bool word = is_word(next_code_point(bytes, at));
    count += word && !in_word ? 1 : 0;
    in_word = word;
  }
  return Value::integer(count);
}

Result<Value> center_filter(Call& call) {
  if (!call.given(0)) call.args[0] = Value::integer(80);
  call.args.emplace_back();  // the fill character, which the filter does not let choose
  return on_string<center>(call);
}

Result<Value> join_filter(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const auto items, collect(call.runtime, call.subject));
  TextBuilder separator;
  if (call.given(0)) QUIRE_RETURN_IF_ERROR(append_str(call.runtime, call.args[0], separator));
  const Text between = separator.take();
  TextBuilder out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(between);
    QUIRE_ASSIGN_OR_RETURN(const Value item, get_path(call.runtime, items[i], call.args[1]));
    QUIRE_RETURN_IF_ERROR(append_str(call.runtime, item, out));
  }
  return call.runtime.string(std::move(out));
}

// Whether a line break behind the text would begin a line of its own; "\r" would join with it.
bool ends_line(std::string_view bytes) {
  size_t at = previous_boundary(bytes, bytes.size());
  const char32_t c = next_code_point(bytes, at);
  return is_line_break(c) && c != '\r';
}

Result<Value> indent(Call& call) {
  if (!call.subject.is(Kind::kString)) {
    return invalid_argument("indent wants a string, not " + quoted(type_name(call.subject)));
  }
  const Text& text = call.subject.text();
  TextBuilder indentation;
  if (call.given(0) && call.args[0].is(Kind::kString)) {
    indentation.append(call.args[0].text());
  } else {
    QUIRE_ASSIGN_OR_RETURN(const Int width, int_argument(call, 0, 4));
    if (width > static_cast<Int>(kMaxValueBytes)) return out_of_range("the template indents too far");
    indentation.append_repeated(" ", static_cast<size_t>(std::max<Int>(width, 0)), Origin::kTemplate);
  }
  const Text unit = indentation.take();
  const bool first = call.given(1) && truthy(call.args[1]), blank = call.given(2) && truthy(call.args[2]);
  // Python adds a line break and then joins the lines without their ends, which drops one at most.
  Pieces lines = lines_of(text.bytes, false);
  if (text.bytes.empty() || ends_line(text.bytes)) lines.emplace_back(text.bytes.size(), text.bytes.size());
  if (lines.size() > kMaxListItems) return out_of_range("the template indents too many lines");
  QUIRE_RETURN_IF_ERROR(call.runtime.charge(lines.size()));
  TextBuilder out;
  if (first) out.append(unit);
  for (size_t i = 0; i < lines.size() && !out.overflowed(); ++i) {
    const auto [begin, end] = lines[i];
    if (i > 0) {
      out.append("\n", begin > 0 ? text.origin_at(begin - 1) : Origin::kTemplate);
      if (blank || begin < end) out.append(unit);
    }
    out.append(text, begin, end);
  }
  return call.runtime.string(std::move(out), text.markup);
}

Result<Value> truncate(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int limit, int_argument(call, 0, 255));
  QUIRE_ASSIGN_OR_RETURN(const Int leeway, int_argument(call, 3, 5, true));
  const Value end = call.given(2) ? call.args[2] : call.runtime.string("...");
  QUIRE_ASSIGN_OR_RETURN(const Int end_length, length(call.runtime, end));
  if (limit < end_length || leeway < 0) return invalid_argument("truncate wants a length of at least its end's");
  QUIRE_ASSIGN_OR_RETURN(const Int size, length(call.runtime, call.subject));
  if (size <= limit + leeway) return call.subject;
  if (!call.subject.is(Kind::kString)) return invalid_argument("truncate wants a string");
  const Text& text = call.subject.text();
  size_t kept = text.byte_offset_of(static_cast<size_t>(limit - end_length));
  const bool kill_words = call.given(1) && truthy(call.args[1]);
  if (!kill_words && kept > 0) {
    const size_t space = text.bytes.rfind(' ', kept - 1);
    if (space != std::string::npos) kept = space;
  }
  const Value head = Value::string(call.heap(), sub_text(text, 0, kept));
  return apply(call.runtime, BinaryOperator::kAdd, head, end);
}

Result<Value> format_filter(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value format, soft_string(call.runtime, call.subject));
  auto& [positional, named] = call.rest;
  if (!positional.empty() && !named.empty()) {
    return invalid_argument("format takes positional or named arguments, not both");
  }
  if (named.empty()) return percent_format(call.runtime, format.text(), make_tuple(call.heap(), std::move(positional)));
  Dict::Entries entries;
  for (auto& [name, value] : named) entries.emplace_back(Value::string(call.heap(), name), value);
  return percent_format(call.runtime, format.text(), make_dict(call.heap(), std::move(entries)));
}

void append_url_quoted(Runtime& runtime, const Text& text, bool in_query, TextBuilder& out) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  const std::string_view unreserved = in_query ? "_.-~" : "_.-~/";
  text.for_each_run(0, text.bytes.size(), [&](size_t begin, size_t end, Origin origin) {
    for (size_t i = begin; i < end && !runtime.meter().spent(); ++i) {
      const char c = text.bytes[i];
      const auto byte = static_cast<unsigned char>(c);
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                         unreserved.find(c) != std::string_view::npos;
      const char escape[] = {'%', kHex[byte >> 4], kHex[byte & 15]};
      if (plain) {
        out.append(std::string_view(&text.bytes[i], 1), origin);
      } else if (c == ' ' && in_query) {
        out.append("+", origin);
      } else {
        out.append(std::string_view(escape, 3), origin);
      }
    }
  });
}

Status append_url_quoted(Runtime& runtime, const Value& value, bool in_query, TextBuilder& out) {
  QUIRE_ASSIGN_OR_RETURN(const Value text, to_string(runtime, value));
  append_url_quoted(runtime, text.text(), in_query, out);
  return runtime.charge_bytes(text.text().bytes.size());
}

Result<Value> url_encode(Call& call) {
  TextBuilder out;
  if (call.subject.is(Kind::kString) || !iterable(call.subject)) {
    QUIRE_RETURN_IF_ERROR(append_url_quoted(call.runtime, call.subject, false, out));
    return call.runtime.string(std::move(out));
  }
  std::vector<Value> pairs;
  if (call.subject.is(Kind::kDict)) {
    for (const auto& [key, value] : call.subject.dict().entries())
      pairs.push_back(make_tuple(call.heap(), {key, value}));
  } else {
    QUIRE_ASSIGN_OR_RETURN(pairs, collect(call.runtime, call.subject));
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const auto pair, collect(call.runtime, pairs[i]));
    if (pair.size() != 2) return invalid_argument("urlencode wants pairs of a key and a value");
    if (i > 0) out.append("&", Origin::kTemplate);
    QUIRE_RETURN_IF_ERROR(append_url_quoted(call.runtime, pair[0], true, out));
    out.append("=", Origin::kTemplate);
    QUIRE_RETURN_IF_ERROR(append_url_quoted(call.runtime, pair[1], true, out));
  }
  return call.runtime.string(std::move(out));
}

Result<Value> to_json(Call& call) {
  JsonStyle style;
  style.ensure_ascii = call.given(0) && truthy(call.args[0]);
  style.sort_keys = call.given(3) && truthy(call.args[3]);
  if (call.given_not_none(1)) {
    style.indented = true;
    style.item_separator = make_text(",", Origin::kTemplate);
    if (call.args[1].is(Kind::kString)) {
      style.indent = call.args[1].text();
    } else {
      QUIRE_ASSIGN_OR_RETURN(const Int width, int_argument(call, 1, 0));
      if (width > 1000) return out_of_range("tojson indents by at most 1000");
      style.indent = make_text(std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' '), Origin::kTemplate);
    }
  }
  if (call.given_not_none(2)) {
    QUIRE_ASSIGN_OR_RETURN(const auto separators, collect(call.runtime, call.args[2]));
    const bool strings = separators.size() == 2 && separators[0].is(Kind::kString) && separators[1].is(Kind::kString);
    if (!strings) return invalid_argument("tojson wants two strings as separators");
    style.item_separator = separators[0].text();
    style.key_separator = separators[1].text();
  }
  return write_json(call.runtime, call.subject, style);
}

constexpr Builtin kFilters[] = {
    {"capitalize", "", on_string<capitalize>},
    {"center", "width?", center_filter},
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", escape},
    {"format", "*", format_filter},
    {"indent", "width? first? blank?", indent},
    {"join", "d? attribute?", join_filter},
    {"lower", "", on_string<lower>},
    {"replace", "old new count?", replace_filter},
    {"safe", "", safe},
    {"string", "", string_filter},
    {"title", "", title_filter},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", to_json},
    {"trim", "chars?", on_string<strip>},
    {"truncate", "length? killwords? end? leeway?", truncate},
    {"upper", "", on_string<upper>},
    {"urlencode", "", url_encode},
    {"wordcount", "", word_count},
};

}  // namespace

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace quire::jinja
