// Case, character classes and padding of strings.
#include "jinja/characters.h"
#include "jinja/format_spec.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

Result<Value> mapped(Call& call, Case how) {
  const Text& text = call.subject.text();
  TextBuilder out;
  map_case(text, how, out, call.runtime.meter());
  return call.runtime.string(std::move(out), text.markup);
}

// True when the string is not empty and every character has the property.
template <typename Property>
Result<Value> all_of(const Call& call, Property property) {
  const std::string& bytes = call.subject.text().bytes;
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(bytes.size()));
  for (size_t at = 0; at < bytes.size();) {
    if (!property(next_code_point(bytes, at))) return Value::boolean(false);
  }
  return Value::boolean(!bytes.empty());
}

// True when there is a cased character and none has another case than asked for.
Result<Value> has_only_case(const Call& call, bool (*wanted)(char32_t)) {
  const std::string& bytes = call.subject.text().bytes;
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(bytes.size()));
  bool any = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = next_code_point(bytes, at);
    if (wanted(c)) {
      any = true;
    } else if (is_cased(c)) {
      return Value::boolean(false);
    }
  }
  return Value::boolean(any);
}

Result<Value> padded(Call& call, char align) {
  const Text& text = call.subject.text();
  QUIRE_ASSIGN_OR_RETURN(const Int width, int_argument(call, 0, 0));
  FormatSpec spec;
  if (call.given(1)) {
    QUIRE_ASSIGN_OR_RETURN(const Value fill, string_argument(call, 1, "the fill character"));
    TextBuilder escaped;
    if (text.markup) {
      QUIRE_RETURN_IF_ERROR(append_escaped(call.runtime, fill, escaped));
    } else {
      escaped.append(fill.text());
    }
    const Text escaped_text = escaped.take();
    spec.fill = escaped_text.bytes;
    spec.origin = escaped_text.joint_origin();
    if (count_code_points(spec.fill) != 1) return invalid_argument("the fill character must be one character long");
  }
  if (width > static_cast<Int>(kMaxValueBytes)) return out_of_range("a string of the template is padded too wide");
  spec.width = static_cast<int>(width < 0 ? 0 : width);
  spec.align = align;
  const size_t length = text.size_code_points();
  const auto wanted = static_cast<size_t>(spec.width);
  TextBuilder out;
  if (align == '^' && wanted > length && (wanted - length) % 2 == 1 && wanted % 2 == 1) {
    // str.center() puts the odd space before the text when the width is odd; format() never does.
    out.append(spec.fill, spec.origin);
    --spec.width;
  }
  append_padded(text, spec, out);
  return call.runtime.string(std::move(out), text.markup);
}

}  // namespace

Result<Value> upper(Call& call) { return mapped(call, Case::kUpper); }
Result<Value> lower(Call& call) { return mapped(call, Case::kLower); }
Result<Value> capitalize(Call& call) { return mapped(call, Case::kCapitalize); }
Result<Value> title(Call& call) { return mapped(call, Case::kTitle); }
Result<Value> swap_case(Call& call) { return mapped(call, Case::kSwap); }
Result<Value> case_fold(Call& call) { return mapped(call, Case::kFold); }

Result<Value> is_lower_text(Call& call) { return has_only_case(call, is_lower); }
Result<Value> is_upper_text(Call& call) { return has_only_case(call, is_upper); }

Result<Value> is_title_text(Call& call) {
  const std::string& bytes = call.subject.text().bytes;
  bool any = false, previous_cased = false;
  for (size_t at = 0; at < bytes.size();) {
    const char32_t c = next_code_point(bytes, at);
    const bool begins = is_upper(c) || is_title(c);
    if (begins == previous_cased && is_cased(c)) return Value::boolean(false);
    previous_cased = is_cased(c);
    any = any || previous_cased;
  }
  return Value::boolean(any);
}

Result<Value> is_alpha_text(Call& call) { return all_of(call, is_alpha); }
Result<Value> is_alphanumeric_text(Call& call) { return all_of(call, is_alphanumeric); }
Result<Value> is_decimal_text(Call& call) { return all_of(call, is_decimal); }
Result<Value> is_digit_text(Call& call) { return all_of(call, is_digit); }
Result<Value> is_numeric_text(Call& call) { return all_of(call, is_numeric); }
Result<Value> is_space_text(Call& call) { return all_of(call, is_space); }
Result<Value> is_ascii_text(Call& call) { return Value::boolean(call.subject.text().ascii); }

Result<Value> is_printable_text(Call& call) {
  if (call.subject.text().bytes.empty()) return Value::boolean(true);
  return all_of(call, is_printable);
}

Result<Value> is_identifier_text(Call& call) {
  bool first = true;
  return all_of(call, [&first](char32_t c) {
    const bool fits = first ? is_identifier_start(c) : is_identifier_part(c);
    first = false;
    return fits;
  });
}

Result<Value> center(Call& call) { return padded(call, '^'); }
Result<Value> left_justify(Call& call) { return padded(call, '<'); }
Result<Value> right_justify(Call& call) { return padded(call, '>'); }

Result<Value> zero_fill(Call& call) {
  const Text& text = call.subject.text();
  QUIRE_ASSIGN_OR_RETURN(const Int width, int_argument(call, 0, 0));
  if (width > static_cast<Int>(kMaxValueBytes)) return out_of_range("a string of the template is padded too wide");
  const Int missing = width - static_cast<Int>(text.size_code_points());
  const bool has_sign = !text.bytes.empty() && (text.bytes[0] == '+' || text.bytes[0] == '-');
  TextBuilder out;
  if (has_sign) out.append(text, 0, 1);
  if (missing > 0) out.append_repeated("0", static_cast<size_t>(missing), Origin::kTemplate);
  out.append(text, has_sign ? 1 : 0, text.bytes.size());
  return call.runtime.string(std::move(out), text.markup);
}

Result<Value> expand_tabs(Call& call) {
  const Text& text = call.subject.text();
  QUIRE_ASSIGN_OR_RETURN(const Int tab_size, int_argument(call, 0, 8));
  if (tab_size > static_cast<Int>(kMaxValueBytes)) return out_of_range("tabs of the template expand too wide");
  TextBuilder out;
  Int column = 0;
  for (size_t at = 0; at < text.bytes.size() && !call.runtime.meter().spent();) {
    const size_t begin = at;
    const char32_t c = next_code_point(text.bytes, at);
    if (c == '\t') {
      const Int spaces = tab_size > 0 ? tab_size - column % tab_size : 0;
      out.append_repeated(" ", static_cast<size_t>(spaces), text.origin_at(begin));
      column += spaces;
    } else {
      column = c == '\n' || c == '\r' ? 0 : column + 1;
      out.append(text, begin, at);
    }
  }
  return call.runtime.string(std::move(out), text.markup);
}

}  // namespace quire::jinja
