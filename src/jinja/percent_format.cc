// printf-style formatting: "%s has %d" % (name, count). Reference: Python's "printf-style String Formatting".
#include "jinja/format_spec.h"
#include "jinja/number.h"
#include "jinja/operators.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Text& format, const Value& argument)
      : runtime_(runtime), format_(format), argument_(argument) {
    if (argument.is(Kind::kTuple)) {
      positional_ = argument.sequence().items();
    } else {
      positional_.push_back(argument);
    }
    // What Python calls a mapping: anything but a string or tuple that can be subscripted.
    mapping_ = argument.is(Kind::kDict) || argument.is(Kind::kList) || argument.is(Kind::kRange) ||
               argument.is(Kind::kUndefined);
  }

  Result<Value> run() {
    const std::string& bytes = format_.bytes;
    while (at_ < bytes.size()) {
      const size_t percent = bytes.find('%', at_);
      const size_t literal_end = percent == std::string::npos ? bytes.size() : percent;
      out_.append(format_, at_, literal_end);
      at_ = literal_end;
      if (percent == std::string::npos) break;
      ++at_;
      QUIRE_RETURN_IF_ERROR(runtime_.charge(1));
      if (peek() == '%') {
        out_.append(format_, at_, at_ + 1);
        ++at_;
        continue;
      }
      QUIRE_RETURN_IF_ERROR(conversion());
    }
    if (!mapping_ && used_ < positional_.size()) return invalid_argument("not all arguments converted by '%'");
    return runtime_.string(std::move(out_), format_.markup);
  }

 private:
  char peek() const { return at_ < format_.bytes.size() ? format_.bytes[at_] : '\0'; }

  Result<Value> next_argument() {
    if (used_ >= positional_.size()) return invalid_argument("not enough arguments for the format of '%'");
    return positional_[used_++];
  }

  Result<int> number() {
    if (peek() == '*') {
      ++at_;
      QUIRE_ASSIGN_OR_RETURN(const Value value, next_argument());
      if (!value.is_integral()) return invalid_argument("'*' in a format of '%' wants an integer");
      if (value.as_int() > INT32_MAX || value.as_int() < -INT32_MAX) return out_of_range("a width of '%' is too large");
      return static_cast<int>(value.as_int());
    }
    int value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + (format_.bytes[at_++] - '0');
      if (value > 100'000'000) return out_of_range("a width of '%' is too large");
    }
    return value;
  }

  Status parse_flags(FormatSpec& spec) {
    for (;; ++at_) {
      switch (peek()) {
        case '-':
          spec.align = '<';
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          if (spec.sign == '-') spec.sign = ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          zero_ = true;
          break;
        default:
          return Status();
      }
    }
  }

  Status conversion() {
    std::optional<Value> named;
    if (peek() == '(') {
      QUIRE_ASSIGN_OR_RETURN(named, named_argument());
    }
    FormatSpec spec;
    zero_ = false;
    QUIRE_RETURN_IF_ERROR(parse_flags(spec));
    QUIRE_ASSIGN_OR_RETURN(spec.width, number());
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      QUIRE_ASSIGN_OR_RETURN(spec.precision, number());
      if (spec.precision < 0) spec.precision = 0;
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    if (at_ >= format_.bytes.size()) return invalid_argument("incomplete format of '%'");
    spec.type = format_.bytes[at_++];
    if (!named) {
      QUIRE_ASSIGN_OR_RETURN(named, next_argument());
    }
    return convert(spec, *named);
  }

  Result<Value> named_argument() {
    if (!mapping_) return invalid_argument("the format of '%' requires a dict");
    const size_t begin = ++at_;
    int depth = 1;
    for (; at_ < format_.bytes.size() && depth > 0; ++at_) {
      depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    }
    if (depth > 0) return invalid_argument("incomplete key in a format of '%'");
    const std::string_view key = std::string_view(format_.bytes).substr(begin, at_ - 1 - begin);
    if (argument_.is(Kind::kUndefined)) return invalid_argument(argument_.undefined_message());
    const Value* value = argument_.is(Kind::kDict) ? argument_.dict().find(key) : nullptr;
    if (value == nullptr) return invalid_argument("no value for the key '" + std::string(key) + "' of a format of '%'");
    return *value;
  }

  Status convert(FormatSpec& spec, const Value& value) {
    spec.origin = value.origin();
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        return convert_text(spec, value);
      case 'c':
        return convert_character(spec, value);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return convert_integer(spec, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return convert_float(spec, value);
      default:
        return invalid_argument(std::string("unsupported conversion '%") + spec.type + "'");
    }
  }

  Status convert_text(const FormatSpec& spec, const Value& value) {
    TextBuilder piece;
    if (spec.type == 's') {
      QUIRE_RETURN_IF_ERROR(format_.markup ? append_escaped(runtime_, value, piece)
                                           : append_str(runtime_, value, piece));
    } else {
      QUIRE_RETURN_IF_ERROR(append_repr(runtime_, value, Origin::kTemplate, piece));
    }
    Text text = piece.take();
    if (spec.type == 'a') text = ascii_only(text);
    if (format_.markup && spec.type != 's') {
      TextBuilder escaped;
      QUIRE_RETURN_IF_ERROR(append_escaped(runtime_, Value::string(runtime_.heap(), std::move(text)), escaped));
      text = escaped.take();
    }
    if (spec.precision >= 0) text = sub_text(text, 0, text.byte_offset_of(static_cast<size_t>(spec.precision)));
    pad(text, spec, '>');
    return Status();
  }

  Status convert_character(const FormatSpec& spec, const Value& value) {
    if (value.is(Kind::kString) && value.text().size_code_points() == 1) {
      pad(value.text(), spec, '>');
      return Status();
    }
    if (!value.is_integral()) return invalid_argument("%c wants an integer or a single character");
    const Int code = value.as_int();
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return invalid_argument("%c is out of range");
    std::string bytes;
    append_utf8(static_cast<char32_t>(code), &bytes);
    pad(make_text(std::move(bytes), spec.origin), spec, '>');
    return Status();
  }

  Status convert_integer(FormatSpec& spec, const Value& value) {
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (value.is(Kind::kUndefined) && decimal) return invalid_argument(value.undefined_message());
    if (!value.is_integral() && !(decimal && value.is(Kind::kFloat))) {
      return invalid_argument(std::string("%") + spec.type + " wants a number, not " + quoted(type_name(value)));
    }
    Int number = value.as_int();
    if (value.is(Kind::kFloat)) {
      QUIRE_ASSIGN_OR_RETURN(number, truncate_float(value.as_float()));
    }
    if (decimal) spec.type = 'd';
    NumberText parts = integer_parts(number, spec);
    if (static_cast<int>(parts.digits.size()) < spec.precision) {
      const size_t missing = static_cast<size_t>(spec.precision) - parts.digits.size();
      if (missing > kMaxValueBytes) return out_of_range("a precision of '%' is too large");
      parts.digits.insert(0, missing, '0');
    }
    return append_number(spec, parts);
  }

  Status convert_float(FormatSpec& spec, const Value& value) {
    if (value.is(Kind::kUndefined)) return invalid_argument(value.undefined_message());
    if (!value.is_number()) {
      return invalid_argument(std::string("%") + spec.type + " wants a number, not " + quoted(type_name(value)));
    }
    if (spec.precision < 0) spec.precision = 6;
    return append_number(spec, float_parts(to_double(value), spec));
  }

  Status append_number(FormatSpec& spec, const NumberText& parts) {
    if (zero_ && spec.align != '<') {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
    return append_padded_number(parts, spec, out_);
  }

  void pad(const Text& text, FormatSpec spec, char default_align) {
    if (spec.align == '\0') spec.align = default_align;
    append_padded(text, spec, out_);
  }

  Runtime& runtime_;
  const Text& format_;
  const Value& argument_;
  std::vector<Value> positional_;
  bool mapping_ = false;
  bool zero_ = false;
  size_t used_ = 0;
  size_t at_ = 0;
  TextBuilder out_;
};

}  // namespace

Result<Value> percent_format(Runtime& runtime, const Text& format, const Value& argument) {
  return PercentFormatter(runtime, format, argument).run();
}

}  // namespace quire::jinja
