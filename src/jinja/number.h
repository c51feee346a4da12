// Numbers as Python reads, writes and combines them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "jinja/value.h"

namespace quire::jinja {

std::string int_text(Int value);
// The shortest digits that read back as `value`, laid out as repr() does: 1.0, 1e+16, inf.
std::string float_text(double value);

// int(text, base): signs, surrounding white space, "_" between digits, prefixes where base allows. Nothing when the
// text is no such number or leaves 128 bits.
std::optional<Int> parse_int(std::string_view text, int base);
// float(text): also "inf", "nan", "1_0.5".
std::optional<double> parse_float(std::string_view text);

double to_double(const Value& number);

// Order of two numbers, exact between int and float; nothing when one is NaN.
std::optional<int> compare_numbers(const Value& left, const Value& right);

// Operators of numbers. "-", "//", "%" as Python: the quotient is floored, the remainder has the divisor's sign.
Result<Value> add_numbers(const Value& left, const Value& right);
Result<Value> subtract_numbers(const Value& left, const Value& right);
Result<Value> multiply_numbers(const Value& left, const Value& right);
Result<Value> divide_numbers(const Value& left, const Value& right);
Result<Value> floor_divide_numbers(const Value& left, const Value& right);
Result<Value> modulo_numbers(const Value& left, const Value& right);
Result<Value> power_numbers(const Value& left, const Value& right);

// round(number, digits): to even on ties of the exact decimal value.
Result<Value> round_number(const Value& number, Int digits);
// int(number) towards zero; fails for inf and nan.
Result<Int> truncate_float(double value);

// printf's %.<precision><style>, style one of e f g E F G.
std::string format_float(double value, char style, int precision, bool alternate);

}  // namespace quire::jinja
