// The format specification of str.format ("{:>10.2f}"), whose layout rules printf-style formatting shares.
// Reference: Python's "Format Specification Mini-Language".
#pragma once

#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

struct FormatSpec {
  std::string fill = " ";             // one character
  Origin origin = Origin::kTemplate;  // whose words the fill and a formatted number are
  char align = '\0';                  // < > ^ =, or none given
  char sign = '-';                    // - + or a space
  bool explicit_sign = false;
  bool zero_padded = false;  // a 0 before the width: numbers are filled behind their sign
  bool alternate = false;
  char grouping = '\0';  // , or _
  int width = 0;         // characters
  int precision = -1;    // -1: none given
  char type = '\0';
};

// Sign and prefix stand before zero padding, digits behind it.
struct NumberText {
  std::string sign;
  std::string prefix;  // 0x and the like
  std::string digits;
};

Result<FormatSpec> parse_format_spec(std::string_view text);

// format(value, spec)
Status append_formatted(Runtime& runtime, const Value& value, const Text& spec_text, TextBuilder& out);

NumberText integer_parts(Int value, const FormatSpec& spec);
// For the types e f g and their capitals.
NumberText float_parts(double value, const FormatSpec& spec);

void append_padded(const Text& text, const FormatSpec& spec, TextBuilder& out);
Status append_padded_number(const NumberText& parts, const FormatSpec& spec, TextBuilder& out);

// The text with every non-ASCII character as \x, \u or \U escape.
Text ascii_only(const Text& text);

}  // namespace quire::jinja
