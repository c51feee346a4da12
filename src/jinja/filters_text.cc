// Filters that make strings.
#include <algorithm>

#include "jinja/attributes.h"
#include "jinja/characters.h"
#include "jinja/compare.h"
#include "jinja/filters.h"
#include "jinja/iteration.h"
#include "jinja/json.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// A method of strings as a filter: the subject is turned into a string first.
template <Result<Value> (*kMethod)(Call&)>
Result<Value> on_string(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(call.subject, to_string(call.runtime, call.subject));
  return kMethod(call);
}

Result<Value> string_filter(Call& call) { return to_string(call.runtime, call.subject); }

Result<Value> safe(Call& call) {
  TextBuilder out;
  QUIRE_RETURN_IF_ERROR(append_str(call.runtime, call.subject, out));
  if (out.overflowed()) return call.runtime.string(std::move(out));
  Text text = out.take();
  text.safe = true;
  return Value::string(call.heap(), std::move(text));
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
  QUIRE_ASSIGN_OR_RETURN(const Value subject, to_string(call.runtime, call.subject));
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
    {"indent", "width? first? blank?", indent},
    {"join", "d? attribute?", join_filter},
    {"lower", "", on_string<lower>},
    {"replace", "old new count?", replace_filter},
    {"safe", "", safe},
    {"string", "", string_filter},
    {"title", "", title_filter},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", to_json},
    {"trim", "chars?", on_string<strip>},
    {"upper", "", on_string<upper>},
};

}  // namespace

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace quire::jinja
