#include "jinja/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "jinja/characters.h"

namespace quire::jinja {
namespace {

const char kTooLarge[] = "an integer of the template leaves the range of 128 bits";

bool both_integral(const Value& left, const Value& right) { return left.is_integral() && right.is_integral(); }

Result<Value> integer_power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) return invalid_argument("0 cannot be raised to a negative power");
    return Value::floating(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  Int result = 1;
  for (Int i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(result, base, &result)) return out_of_range(kTooLarge);
  }
  return Value::integer(result);
}

double float_modulo(double left, double right) {
  double remainder = std::fmod(left, right);
  if (remainder != 0) {
    if ((right < 0) != (remainder < 0)) remainder += right;
  } else {
    remainder = std::copysign(0.0, right);
  }
  return remainder;
}

double float_floor_divide(double left, double right) {
  const double remainder = std::fmod(left, right);
  double quotient = (left - remainder) / right;
  if (remainder != 0 && (right < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

int digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'Z') return digit - 'A' + 10;
  return 99;
}

// Drops the "_" that Python allows between digits; false when one stands elsewhere.
bool drop_separators(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 10 && digit_value(text[i + 1]) < 10;
    if (!between) return false;
  }
  return true;
}

// Removes a prefix such as 0x that fits `base`, and settles base 0. False when the text cannot be of that base.
bool take_base_prefix(std::string_view& digits, int& base) {
  const char letter = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefixed != 0 && (base == 0 || base == prefixed)) {
    base = prefixed;
    digits.remove_prefix(2);
    if (!digits.empty() && digits[0] == '_') digits.remove_prefix(1);
  } else if (base == 0) {
    base = 10;
    const bool leading_zero = digits.size() > 1 && digits[0] == '0';
    if (leading_zero && digits.find_first_not_of("0_") != std::string_view::npos) return false;
  }
  return true;
}

// Half-to-even rounding of an integer to a multiple of 10^places.
Result<Value> round_integer(Int value, Int places) {
  Int unit = 1;
  for (Int i = 0; i < places; ++i) {
    if (__builtin_mul_overflow(unit, Int{10}, &unit)) return Value::integer(0);
  }
  Int remainder = value % unit;
  if (remainder < 0) remainder += unit;
  Int floored = 0;
  if (__builtin_sub_overflow(value, remainder, &floored)) return out_of_range(kTooLarge);
  const bool odd = (floored / unit) % 2 != 0;
  const bool up = remainder > unit / 2 || (remainder == unit / 2 && unit % 2 == 0 && odd);
  Int rounded = floored;
  if (up && __builtin_add_overflow(floored, unit, &rounded)) return out_of_range(kTooLarge);
  return Value::integer(rounded);
}

}  // namespace

std::string int_text(Int value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string digits;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (digit < 0 ? -digit : digit)));
  }
  if (negative) digits.insert(digits.begin(), '-');
  return digits;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::scientific).ptr;
  std::string_view scientific(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t mark = scientific.find('e');
  const int exponent = std::atoi(std::string(scientific.substr(mark + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  std::string sign, digits;
  for (const char c : scientific.substr(0, mark)) {
    if (c == '-') sign.assign(1, c);
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::optional<Int> parse_int(std::string_view text, int base) {
  text = strip_space(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (!take_base_prefix(text, base) || text.empty() || text.back() == '_' || text.front() == '_') return std::nullopt;
  Int value = 0;
  bool after_separator = false;
  for (const char c : text) {
    if (c == '_') {
      if (after_separator) return std::nullopt;
      after_separator = true;
      continue;
    }
    after_separator = false;
    const int digit = digit_value(c);
    if (digit >= base) return std::nullopt;
    const Int signed_digit = negative ? -digit : digit;
    if (__builtin_mul_overflow(value, Int{base}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, signed_digit, &value)) return std::nullopt;
  }
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  std::string digits;
  if (!drop_separators(strip_space(text), digits)) return std::nullopt;
  const bool signed_text = !digits.empty() && (digits[0] == '+' || digits[0] == '-');
  const std::string_view body = std::string_view(digits).substr(signed_text ? 1 : 0);
  if (body.empty() || body[0] == '+' || body[0] == '-') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (end != body.data() + body.size() || body.find('(') != std::string_view::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(body).c_str(), nullptr);  // inf or a rounded-away tiny number, as Python reads it
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return digits[0] == '-' ? -value : value;
}

double to_double(const Value& number) {
  return number.is(Kind::kFloat) ? number.as_float() : static_cast<double>(number.as_int());
}

std::optional<int> compare_numbers(const Value& left, const Value& right) {
  const auto order = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
  if (both_integral(left, right)) return order(left.as_int(), right.as_int());
  if (left.is(Kind::kFloat) && right.is(Kind::kFloat)) {
    if (std::isnan(left.as_float()) || std::isnan(right.as_float())) return std::nullopt;
    return order(left.as_float(), right.as_float());
  }
  if (left.is(Kind::kFloat)) {
    const auto reversed = compare_numbers(right, left);
    return reversed ? std::optional<int>(-*reversed) : std::nullopt;
  }
  const double floating = right.as_float();
  if (std::isnan(floating)) return std::nullopt;
  constexpr double kTwoTo127 = 170141183460469231731687303715884105728.0;
  if (floating >= kTwoTo127) return -1;
  if (floating < -kTwoTo127) return 1;
  const double whole = std::floor(floating);
  const int by_whole = order(left.as_int(), static_cast<Int>(whole));
  return by_whole != 0 ? by_whole : floating > whole ? -1 : 0;
}

Result<Value> add_numbers(const Value& left, const Value& right) {
  if (!both_integral(left, right)) return Value::floating(to_double(left) + to_double(right));
  Int sum = 0;
  if (__builtin_add_overflow(left.as_int(), right.as_int(), &sum)) return out_of_range(kTooLarge);
  return Value::integer(sum);
}

Result<Value> subtract_numbers(const Value& left, const Value& right) {
  if (!both_integral(left, right)) return Value::floating(to_double(left) - to_double(right));
  Int difference = 0;
  if (__builtin_sub_overflow(left.as_int(), right.as_int(), &difference)) return out_of_range(kTooLarge);
  return Value::integer(difference);
}

Result<Value> multiply_numbers(const Value& left, const Value& right) {
  if (!both_integral(left, right)) return Value::floating(to_double(left) * to_double(right));
  Int product = 0;
  if (__builtin_mul_overflow(left.as_int(), right.as_int(), &product)) return out_of_range(kTooLarge);
  return Value::integer(product);
}

Result<Value> divide_numbers(const Value& left, const Value& right) {
  if (to_double(right) == 0) return invalid_argument("division by zero");
  return Value::floating(to_double(left) / to_double(right));
}

Result<Value> floor_divide_numbers(const Value& left, const Value& right) {
  if (to_double(right) == 0) return invalid_argument("division by zero");
  if (!both_integral(left, right)) return Value::floating(float_floor_divide(to_double(left), to_double(right)));
  const Int a = left.as_int(), b = right.as_int();
  if (b == -1) return subtract_numbers(Value::integer(0), left);
  const bool round_down = a % b != 0 && (a < 0) != (b < 0);
  return Value::integer(a / b - (round_down ? 1 : 0));
}

Result<Value> modulo_numbers(const Value& left, const Value& right) {
  if (to_double(right) == 0) return invalid_argument("modulo by zero");
  if (!both_integral(left, right)) return Value::floating(float_modulo(to_double(left), to_double(right)));
  const Int a = left.as_int(), b = right.as_int();
  if (b == -1) return Value::integer(0);
  const Int remainder = a % b;
  return Value::integer(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder);
}

Result<Value> power_numbers(const Value& left, const Value& right) {
  if (both_integral(left, right)) return integer_power(left.as_int(), right.as_int());
  const double base = to_double(left), exponent = to_double(right);
  if (base == 0 && exponent < 0) return invalid_argument("0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    return unsupported("a negative number raised to a fraction is complex, which templates of quire do not know");
  }
  const double power = std::pow(base, exponent);
  if (std::isinf(power) && std::isfinite(base) && std::isfinite(exponent)) return out_of_range("a power is too large");
  return Value::floating(power);
}

Result<Value> round_number(const Value& number, Int digits) {
  if (number.is_integral()) {
    return digits >= 0 ? Result<Value>(Value::integer(number.as_int())) : round_integer(number.as_int(), -digits);
  }
  const double value = number.as_float();
  if (!std::isfinite(value) || digits > 323) return number;
  if (digits < -308) return Value::floating(std::copysign(0.0, value));
  if (digits >= 0) {
    const double rounded = std::strtod(format_float(value, 'f', static_cast<int>(digits), false).c_str(), nullptr);
    if (std::isinf(rounded)) return out_of_range("a rounded value is too large");
    return Value::floating(rounded);
  }
  // Round the exact decimal digits: drop `places` of the whole part, then to nearest, ties to even.
  const auto places = static_cast<size_t>(-digits);
  std::string exact = format_float(std::fabs(value), 'f', 1074, false);
  exact.erase(exact.find_last_not_of('0') + 1);
  const size_t point = exact.find('.');
  std::string whole(places + 1, '0');
  whole += exact.substr(0, point);
  const std::string dropped = whole.substr(whole.size() - places) + exact.substr(point + 1);
  whole.resize(whole.size() - places);
  const bool beyond_half = dropped[0] > '5' || (dropped[0] == '5' && dropped.find_first_not_of('0', 1) != dropped.npos);
  const bool tie = dropped[0] == '5' && !beyond_half;
  double kept = std::strtod((whole + std::string(places, '0')).c_str(), nullptr);
  if (beyond_half || (tie && (whole.back() - '0') % 2 == 1)) {
    size_t at = whole.size();
    while (at > 0 && whole[at - 1] == '9') whole[--at] = '0';
    if (at > 0) ++whole[at - 1];
    kept = std::strtod((whole + std::string(places, '0')).c_str(), nullptr);
  }
  return Value::floating(std::copysign(kept, value));
}

Result<Int> truncate_float(double value) {
  if (!std::isfinite(value)) return invalid_argument("cannot convert float " + float_text(value) + " to integer");
  constexpr double kTwoTo127 = 170141183460469231731687303715884105728.0;
  if (std::fabs(value) >= kTwoTo127) return out_of_range(kTooLarge);
  return static_cast<Int>(value);
}

std::string format_float(double value, char style, int precision, bool alternate) {
  const std::string format = std::string("%") + (alternate ? "#" : "") + ".*" + style;
  const int size = std::snprintf(nullptr, 0, format.c_str(), precision, value);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), precision, value);
  text.pop_back();
  return text;
}

}  // namespace quire::jinja
