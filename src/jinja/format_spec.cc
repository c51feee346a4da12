#include "jinja/format_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "jinja/number.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// More digits than this no template needs; it bounds what printf is asked for.
constexpr int kMaxPrecision = 10'000;

bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

Result<int> take_number(std::string_view& text) {
  int value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = value * 10 + (text[0] - '0');
    if (value > 100'000'000) return out_of_range("a width or precision of a format is too large");
    text.remove_prefix(1);
  }
  return value;
}

// Inserts `separator` between groups of digits, counted from the right end of the whole part.
std::string group_digits(const std::string& digits, char separator, size_t group) {
  const char* const alphabet = group == 3 ? "0123456789" : "0123456789abcdefABCDEF";
  const size_t whole = std::min(digits.find_first_not_of(alphabet), digits.size());
  std::string grouped;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % group == 0) grouped.push_back(separator);
    grouped.push_back(digits[i]);
  }
  return grouped + digits.substr(whole);
}

std::string sign_text(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

// float with no type: repr() digits, or %g that keeps one digit behind the point.
std::string shortest_digits(double magnitude, const FormatSpec& spec) {
  if (spec.precision < 0) return float_text(magnitude);
  const int precision = std::max(spec.precision, 1);
  std::string digits = format_float(magnitude, 'g', precision, spec.alternate);
  if (digits.find_first_of(".e") == std::string::npos && std::isfinite(magnitude)) {
    // Python switches to an exponent one digit earlier than %g does.
    if (static_cast<int>(digits.size()) >= precision) {
      digits = format_float(magnitude, 'e', precision - 1, spec.alternate);
      const size_t exponent = digits.find('e');
      const size_t kept = digits.find_last_not_of("0.", exponent - 1) + 1;
      if (!spec.alternate && precision > 1) digits.erase(kept, exponent - kept);
    } else {
      digits += ".0";
    }
  }
  return digits;
}

Status append_float(double value, FormatSpec spec, TextBuilder& out) {
  if (spec.precision > kMaxPrecision) return out_of_range("a precision of a format is too large");
  if (spec.type == 'n') spec.type = 'g';
  if (spec.type == '\0') {
    NumberText parts{sign_text(std::signbit(value), spec), "", shortest_digits(std::fabs(value), spec)};
    if (spec.grouping != '\0') parts.digits = group_digits(parts.digits, spec.grouping, 3);
    return append_padded_number(parts, spec, out);
  }
  const bool percent = spec.type == '%';
  if (percent) {
    spec.type = 'f';
    value *= 100;
  }
  if (spec.precision < 0) spec.precision = 6;
  NumberText parts = float_parts(value, spec);
  if (spec.grouping != '\0') parts.digits = group_digits(parts.digits, spec.grouping, 3);
  if (percent) parts.digits += "%";
  return append_padded_number(parts, spec, out);
}

Status append_integer(const Value& value, const FormatSpec& spec, TextBuilder& out) {
  const bool integer_type = spec.type == '\0' || std::string_view("bcdoxXn").find(spec.type) != std::string_view::npos;
  if (spec.precision >= 0 && integer_type) {
    return invalid_argument("a format of an integer allows no precision");
  }
  if (spec.type == 'c') {
    if (spec.sign != '-' || spec.explicit_sign || spec.alternate) {
      return invalid_argument("the format type 'c' allows no sign and no '#'");
    }
    const Int code = value.as_int();
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      return invalid_argument("format type 'c' is out of range");
    }
    std::string bytes;
    append_utf8(static_cast<char32_t>(code), &bytes);
    append_padded(make_text(std::move(bytes), spec.origin), spec, out);
    return Status();
  }
  if (std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type != '\0') {
    return append_float(to_double(value), spec, out);
  }
  if (std::string_view("bdoxXn").find(spec.type) == std::string_view::npos && spec.type != '\0') {
    return invalid_argument(std::string("unknown format type '") + spec.type + "' for an integer");
  }
  NumberText parts = integer_parts(value.as_int(), spec);
  const bool decimal = spec.type == 'd' || spec.type == '\0' || spec.type == 'n';
  if (spec.grouping == ',' && !decimal) return invalid_argument("a format allows ',' for decimal numbers only");
  if (spec.grouping != '\0') parts.digits = group_digits(parts.digits, spec.grouping, decimal ? 3 : 4);
  return append_padded_number(parts, spec, out);
}

Status append_string(const Text& text, FormatSpec spec, TextBuilder& out) {
  if (spec.type != '\0' && spec.type != 's') {
    return invalid_argument(std::string("unknown format type '") + spec.type + "' for a string");
  }
  if (spec.align == '=' || spec.explicit_sign || spec.alternate || spec.grouping != '\0') {
    return invalid_argument("a format of a string allows no sign, '=', '#' or grouping");
  }
  if (spec.align == '\0') spec.align = '<';
  if (spec.precision < 0) {
    append_padded(text, spec, out);
  } else {
    append_padded(sub_text(text, 0, text.byte_offset_of(static_cast<size_t>(spec.precision))), spec, out);
  }
  return Status();
}

}  // namespace

Result<FormatSpec> parse_format_spec(std::string_view text) {
  FormatSpec spec;
  bool explicit_fill = false;
  const size_t fill_bytes = text.empty() ? 0 : utf8_length(text[0]);
  if (text.size() > fill_bytes && is_align(text[fill_bytes])) {
    spec.fill = text.substr(0, fill_bytes);
    explicit_fill = true;
    spec.align = text[fill_bytes];
    text.remove_prefix(fill_bytes + 1);
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&text](std::string_view choices) {
    if (text.empty() || choices.find(text[0]) == std::string_view::npos) return '\0';
    const char taken = text[0];
    text.remove_prefix(1);
    return taken;
  };
  if (const char sign = take("+- ")) {
    spec.sign = sign;
    spec.explicit_sign = true;
  }
  spec.alternate = take("#") != '\0';
  if (!explicit_fill && take("0") != '\0') {
    spec.fill.assign(1, '0');
    if (spec.align == '\0') spec.zero_padded = true;
  }
  QUIRE_ASSIGN_OR_RETURN(spec.width, take_number(text));
  spec.grouping = take(",_");
  if (take(".") != '\0') {
    if (text.empty() || text[0] < '0' || text[0] > '9') return invalid_argument("a format misses its precision");
    QUIRE_ASSIGN_OR_RETURN(spec.precision, take_number(text));
  }
  if (text.size() > 1) return invalid_argument("invalid format specifier");
  if (!text.empty()) spec.type = text[0];
  if (spec.grouping != '\0' && (spec.type == 'n' || spec.type == 'c')) {
    return invalid_argument("a format cannot group digits with this type");
  }
  return spec;
}

Status append_formatted(Runtime& runtime, const Value& value, const Text& spec_text, TextBuilder& out) {
  if (spec_text.bytes.empty()) return append_str(runtime, value, out);
  QUIRE_ASSIGN_OR_RETURN(FormatSpec spec, parse_format_spec(spec_text.bytes));
  spec.origin = joint_origin(spec_text.joint_origin(), value.origin());
  if (value.is(Kind::kString)) {
    return append_string(value.text(), spec, out);
  }
  if (spec.zero_padded) spec.align = '=';
  if (value.is_integral()) return append_integer(value, spec, out);
  if (value.is(Kind::kFloat)) {
    if (spec.type != '\0' && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) {
      return invalid_argument(std::string("unknown format type '") + spec.type + "' for a float");
    }
    return append_float(value.as_float(), spec, out);
  }
  return invalid_argument("a value of type " + quoted(type_name(value)) + " takes no format specifier");
}

NumberText integer_parts(Int value, const FormatSpec& spec) {
  NumberText parts;
  parts.sign = sign_text(value < 0, spec);
  const int base = spec.type == 'x' || spec.type == 'X' ? 16 : spec.type == 'o' ? 8 : spec.type == 'b' ? 2 : 10;
  const char* digits = spec.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  do {
    const int digit = static_cast<int>(value % base);
    parts.digits.push_back(digits[digit < 0 ? -digit : digit]);
    value /= base;
  } while (value != 0);
  std::reverse(parts.digits.begin(), parts.digits.end());
  if (spec.alternate && base != 10) parts.prefix = std::string("0") + spec.type;
  return parts;
}

NumberText float_parts(double value, const FormatSpec& spec) {
  NumberText parts;
  parts.sign = sign_text(std::signbit(value) && !std::isnan(value), spec);
  const int precision = std::min(spec.precision, kMaxPrecision);
  parts.digits = format_float(std::fabs(value), spec.type, precision, spec.alternate);
  return parts;
}

void append_padded(const Text& text, const FormatSpec& spec, TextBuilder& out) {
  const size_t length = text.size_code_points();
  const auto width = static_cast<size_t>(spec.width);
  const size_t missing = width > length ? width - length : 0;
  const size_t before = spec.align == '<' ? 0 : spec.align == '^' ? missing / 2 : missing;
  out.append_repeated(spec.fill, before, spec.origin);
  out.append(text);
  out.append_repeated(spec.fill, missing - before, spec.origin);
}

Status append_padded_number(const NumberText& parts, const FormatSpec& spec, TextBuilder& out) {
  if (spec.align != '=') {
    FormatSpec aligned = spec;
    if (aligned.align == '\0') aligned.align = '>';
    append_padded(make_text(parts.sign + parts.prefix + parts.digits, spec.origin), aligned, out);
    return Status();
  }
  const size_t used = parts.sign.size() + parts.prefix.size() + parts.digits.size();
  const auto width = static_cast<size_t>(spec.width);
  out.append(parts.sign + parts.prefix, spec.origin);
  if (spec.grouping != '\0' && spec.fill == "0" && width > used) {
    if (width > kMaxValueBytes) return out_of_range("a width of a format is too large");
    // Padding zeros are grouped with the digits, so they are counted in digits: try until the width is reached.
    const size_t whole = std::min(parts.digits.find_first_of(".e%"), parts.digits.size());
    std::string plain = parts.digits.substr(0, whole);
    plain.erase(std::remove(plain.begin(), plain.end(), spec.grouping), plain.end());
    const bool decimal = spec.type != 'x' && spec.type != 'X' && spec.type != 'o' && spec.type != 'b';
    const size_t group = decimal ? 3 : 4;
    const size_t room = width - parts.sign.size() - parts.prefix.size() - (parts.digits.size() - whole);
    size_t count = plain.size();
    while (count + (count - 1) / group < room) ++count;
    plain.insert(0, count - plain.size(), '0');
    out.append(group_digits(plain, spec.grouping, group) + parts.digits.substr(whole), spec.origin);
    return Status();
  }
  out.append_repeated(spec.fill, width > used ? width - used : 0, spec.origin);
  out.append(parts.digits, spec.origin);
  return Status();
}

Text ascii_only(const Text& text) {
  TextBuilder out;
  size_t at = 0;
  text.for_each_run(0, text.bytes.size(), [&](size_t, size_t end, Origin origin) {
    while (at < end) {
      const char32_t c = next_code_point(text.bytes, at);
      if (c < 0x80) {
        out.append(c, origin);
        continue;
      }
      char escape[16];
      const char* format = c <= 0xFF ? "\\x%02x" : c <= 0xFFFF ? "\\u%04x" : "\\U%08x";
      std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(c));
      out.append(escape, origin);
    }
  });
  return out.take();
}

}  // namespace quire::jinja
