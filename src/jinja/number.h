// Numbers as Python reads, writes and combines them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "jinja/value.h"

namespace quire::jinja {

// The shortest digits that read back as `value`, laid out as repr() does: 1.0, 1e+16, inf.
std::string float_text(double value);
// printf's %.<precision>f
std::string format_float(double value, int precision);

// int(text) and float(text): signs, surrounding white space, "_" between digits, "inf", "nan". Nothing when the text is no
// such number, or an integer that leaves 64 bits.
std::optional<Int> parse_int(std::string_view text);
std::optional<double> parse_float(std::string_view text);

double to_double(const Value& number);

// Order of two numbers, exact between int and float; nothing when one is NaN.
std::optional<int> compare_numbers(const Value& left, const Value& right);

// Operators of numbers. "//" and "%" as Python: the quotient is floored, the remainder has the divisor's sign.
Result<Value> add_numbers(const Value& left, const Value& right);
Result<Value> subtract_numbers(const Value& left, const Value& right);
Result<Value> multiply_numbers(const Value& left, const Value& right);
Result<Value> divide_numbers(const Value& left, const Value& right);
Result<Value> floor_divide_numbers(const Value& left, const Value& right);
Result<Value> modulo_numbers(const Value& left, const Value& right);

// int(number) towards zero; fails for inf, nan and what has more than 64 bits.
Result<Int> truncate_float(double value);

}  // namespace quire::jinja
