#include "jinja/number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "unicode/white_space.h"

namespace quire::jinja {
namespace {

const char kTooLarge[] = "an integer of the template leaves the range of 64 bits";
constexpr double kTwoTo63 = 9223372036854775808.0;

bool both_integral(const Value& left, const Value& right) { return left.is_integral() && right.is_integral(); }

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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The text without surrounding space and without the "_" that Python allows between digits; nothing when one stands
// elsewhere, or the text is empty.
std::optional<std::string> plain_number(std::string_view text) {
  text = strip_space(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out.empty() ? std::nullopt : std::optional<std::string>(std::move(out));
}

}  // namespace

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

std::optional<Int> parse_int(std::string_view text) {
  const auto number = plain_number(text);
  if (!number) return std::nullopt;
  // from_chars knows no "+".
  const size_t skipped = (*number)[0] == '+' && number->size() > 1 && is_digit((*number)[1]) ? 1 : 0;
  const char* const last = number->data() + number->size();
  Int value = 0;
  const auto [end, error] = std::from_chars(number->data() + skipped, last, value);
  return end == last && error == std::errc() ? std::optional<Int>(value) : std::nullopt;
}

std::optional<double> parse_float(std::string_view text) {
  const auto number = plain_number(text);
  if (!number) return std::nullopt;
  const bool has_sign = (*number)[0] == '+' || (*number)[0] == '-';
  const std::string body = number->substr(has_sign ? 1 : 0);
  if (body.empty() || body[0] == '+' || body[0] == '-') return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (end != body.data() + body.size() || body.find('(') != std::string::npos) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(body.c_str(), nullptr);  // inf or a rounded-away tiny number, as Python reads it
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return (*number)[0] == '-' ? -value : value;
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
  if (floating >= kTwoTo63) return -1;
  if (floating < -kTwoTo63) return 1;
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

Result<Int> truncate_float(double value) {
  if (!std::isfinite(value)) return invalid_argument("cannot convert float " + float_text(value) + " to integer");
  if (value >= kTwoTo63 || value < -kTwoTo63) return out_of_range(kTooLarge);
  return static_cast<Int>(value);
}

std::string format_float(double value, int precision) {
  const int size = std::snprintf(nullptr, 0, "%.*f", precision, value);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(text.data(), text.size(), "%.*f", precision, value);
  text.pop_back();
  return text;
}

}  // namespace quire::jinja
