// printf-style formatting: "%s has %d" % (name, count). Of Python's conversions s, r, d, i and f, with a width, a
// precision and the flags - + 0 and space.
#include <algorithm>
#include <cmath>

#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// Bounds what printf is asked for, and what a template can ask to be padded to.
constexpr int kMaxPrecision = 10'000;
constexpr int kMaxWidth = 100'000'000;

struct Conversion {
  bool left = false;         // -
  bool zero_padded = false;  // 0
  std::string sign;          // "+" or " ": what stands before a positive number
  int width = 0;             // characters
  int precision = -1;        // -1: none given
  char type = '\0';
};

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& argument) : runtime_(runtime), format_(format) {
    if (argument.is(Kind::kTuple)) {
      arguments_ = argument.sequence().items();
    } else {
      arguments_.push_back(argument);
    }
    // What Python calls a mapping, anything but a string or tuple that can be subscripted, need not be used.
    mapping_ = argument.is(Kind::kDict) || argument.is(Kind::kList) || argument.is(Kind::kRange) ||
               argument.is(Kind::kUndefined);
  }

  Result<Value> run() {
    const std::string& bytes = format_.bytes;
    while (at_ < bytes.size()) {
      const size_t percent = std::min(bytes.find('%', at_), bytes.size());
      out_.append(format_, at_, percent);
      at_ = percent + 1;
      if (percent == bytes.size()) break;
      QUIRE_RETURN_IF_ERROR(runtime_.charge(1));
      if (peek() == '%') {
        out_.append(format_, at_, at_ + 1);
        ++at_;
        continue;
      }
      QUIRE_RETURN_IF_ERROR(convert_next());
    }
    if (!mapping_ && used_ < arguments_.size()) return invalid_argument("not all arguments converted by '%'");
    return runtime_.string(std::move(out_));
  }

 private:
  char peek() const { return at_ < format_.bytes.size() ? format_.bytes[at_] : '\0'; }

  Result<int> number(int limit) {
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (format_.bytes[at_++] - '0');
      if (value > limit) return out_of_range("a width or precision of '%' is too large");
    }
    return value;
  }

  Result<Conversion> parse_conversion() {
    Conversion conversion;
    for (; std::string_view("-+ 0").find(peek()) != std::string_view::npos; ++at_) {
      conversion.left = conversion.left || peek() == '-';
      conversion.zero_padded = conversion.zero_padded || peek() == '0';
      if (peek() == '+' || (peek() == ' ' && conversion.sign.empty())) conversion.sign.assign(1, peek());
    }
    QUIRE_ASSIGN_OR_RETURN(conversion.width, number(kMaxWidth));
    if (peek() == '.') {
      ++at_;
      QUIRE_ASSIGN_OR_RETURN(conversion.precision, number(kMaxPrecision));
    }
    if (at_ >= format_.bytes.size()) return invalid_argument("incomplete format of '%'");
    conversion.type = format_.bytes[at_++];
    return conversion;
  }

  Status convert_next() {
    QUIRE_ASSIGN_OR_RETURN(const Conversion conversion, parse_conversion());
    switch (conversion.type) {
      case 's':
      case 'r':
        return convert_text(conversion);
      case 'd':
      case 'i':
      case 'f':
        return convert_number(conversion);
      default:
        return unsupported("the conversion '%" + std::string(1, conversion.type) +
                           "' is not among those quire knows (docs/chat-templates.md lists them)");
    }
  }

  Result<Value> next_argument() {
    if (used_ >= arguments_.size()) return invalid_argument("not enough arguments for the format of '%'");
    return arguments_[used_++];
  }

  Status convert_text(const Conversion& conversion) {
    QUIRE_ASSIGN_OR_RETURN(const Value value, next_argument());
    TextBuilder piece;
    if (conversion.type == 's') {
      QUIRE_RETURN_IF_ERROR(append_str(runtime_, value, piece));
    } else {
      QUIRE_RETURN_IF_ERROR(append_repr(runtime_, value, Origin::kTemplate, piece));
    }
    Text text = piece.take();
    if (conversion.precision >= 0) {
      text = sub_text(text, 0, text.byte_offset_of(static_cast<size_t>(conversion.precision)));
    }
    append_padded(conversion, text, value.origin());
    return Status();
  }

  Status convert_number(const Conversion& conversion) {
    QUIRE_ASSIGN_OR_RETURN(const Value value, next_argument());
    if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
    if (!value.is_number()) {
      return invalid_argument(std::string("%") + conversion.type + " wants a number, not " + quoted(type_name(value)));
    }
    std::string digits;
    if (conversion.type == 'f') {
      const double floating = to_double(value);
      digits = format_float(std::isnan(floating) ? std::fabs(floating) : floating,
                            conversion.precision < 0 ? 6 : conversion.precision);
    } else {
      if (conversion.precision >= 0) return unsupported("'%' knows no precision of an integer in quire");
      Int number = value.as_int();
      if (value.is(Kind::kFloat)) {
        QUIRE_ASSIGN_OR_RETURN(number, truncate_float(value.as_float()));
      }
      digits = std::to_string(number);
    }
    std::string sign = conversion.sign;
    if (digits[0] == '-') {
      sign = "-";
      digits.erase(0, 1);
    }
    const auto width = static_cast<size_t>(conversion.width);
    const size_t used = sign.size() + digits.size();
    if (!conversion.zero_padded || conversion.left || width <= used) {
      append_padded(conversion, make_text(sign + digits, value.origin()), value.origin());
      return Status();
    }
    out_.append(sign, value.origin());
    out_.append_repeated("0", width - used, value.origin());
    out_.append(digits, value.origin());
    return Status();
  }

  void append_padded(const Conversion& conversion, const Text& text, Origin origin) {
    const size_t length = text.size_code_points();
    const auto width = static_cast<size_t>(conversion.width);
    const size_t missing = width > length ? width - length : 0;
    if (!conversion.left) out_.append_repeated(" ", missing, origin);
    out_.append(text);
    if (conversion.left) out_.append_repeated(" ", missing, origin);
  }

  Runtime& runtime_;
  const Text& format_;
  std::vector<Value> arguments_;
  bool mapping_ = false;
  size_t used_ = 0;
  size_t at_ = 0;
  TextBuilder out_;
};

}  // namespace

Result<Value> percent_format(Runtime& runtime, const Text& format, const Value& argument) {
  return PercentFormatter(runtime, format, argument).run();
}

}  // namespace quire::jinja
