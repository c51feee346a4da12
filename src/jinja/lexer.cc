#include "jinja/lexer.h"

#include <algorithm>

#include "jinja/string_literal.h"
#include "unicode/utf8.h"
#include "unicode/white_space.h"

namespace quire::jinja {
namespace {

// Line breaks become "\n", and the last one is dropped, as jinja2 does it.
std::string normalize(std::string_view source) {
  std::string text = normalize_line_breaks(source);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

size_t match_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_ascii_digit(text[at])) ++at;
  return at;
}

// End of a number with a fraction or exponent, or `at` if there is none.
size_t match_float(std::string_view text, size_t at) {
  if (at > 0 && text[at - 1] == '.') return at;
  const size_t whole = match_digits(text, at);
  size_t end = whole;
  if (end < text.size() && text[end] == '.') {
    const size_t fraction = match_digits(text, end + 1);
    if (fraction > end + 1) end = fraction;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const size_t sign = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-') ? 1 : 0;
    const size_t exponent = match_digits(text, end + 1 + sign);
    if (exponent > end + 1 + sign) return exponent;
  }
  return end > whole ? end : at;
}

bool begins_name(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

Lexer::Lexer(std::string_view source) : source_(normalize(source)) {}

Status Lexer::error(std::string message) const {
  return invalid_argument("line " + std::to_string(line_) + ": " + std::move(message));
}

void Lexer::advance(size_t to) {
  line_ += static_cast<int>(
      std::count(source_.begin() + static_cast<ptrdiff_t>(at_), source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
  if (to > at_) line_starting_ = source_[to - 1] == '\n';
  at_ = to;
}

size_t Lexer::skip_space(size_t at) const {
  while (at < source_.size()) {
    size_t after = at;
    if (!is_space(next_code_point(source_, after))) break;
    at = after;
  }
  return at;
}

Result<Token> Lexer::next() { return state_ == State::kText ? next_in_text() : next_in_tag(); }

// Where the next {{, {% or {# begins, or the end.
size_t Lexer::find_tag(size_t from) const {
  for (size_t at = source_.find('{', from); at != std::string::npos; at = source_.find('{', at + 1)) {
    const char second = at + 1 < source_.size() ? source_[at + 1] : '\0';
    if (second == '{' || second == '%' || second == '#') return at;
  }
  return source_.size();
}

std::string Lexer::text_before_tag(size_t begin, size_t tag, char sign, bool trims_line) const {
  const std::string_view text = std::string_view(source_).substr(begin, tag - begin);
  if (sign == '-') {
    const std::string_view kept = strip_space(text);
    const size_t leading = kept.empty() ? 0 : static_cast<size_t>(kept.data() - text.data());
    return std::string(text.substr(0, leading + kept.size()));
  }
  if (sign == '+' || !trims_line) return std::string(text);
  const size_t line_break = text.rfind('\n');
  const size_t line_begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  const bool blank = strip_space(text.substr(line_begin)).empty();
  if ((line_begin > 0 || line_starting_) && blank) return std::string(text.substr(0, line_begin));
  return std::string(text);
}

Result<Token> Lexer::next_in_text() {
  while (at_ < source_.size()) {
    const size_t begin = at_;
    const size_t tag = find_tag(begin);
    Token token{TokenKind::kData, line_, {}};
    if (tag == source_.size()) {
      token.text = source_.substr(begin);
      advance(tag);
      return token;
    }
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    token.text = text_before_tag(begin, tag, sign, source_[tag + 1] != '{');
    advance(tag);
    if (!token.text.empty()) return token;
    QUIRE_ASSIGN_OR_RETURN(const bool is_token, enter_tag(tag, token));
    if (is_token) return token;
  }
  return Token{TokenKind::kEnd, line_, {}};
}

// Consumes the beginning of the tag at `tag`, or all of it if it is a comment. True if it made a token.
Result<bool> Lexer::enter_tag(size_t tag, Token& token) {
  token.line = line_;
  const size_t raw_body = raw_begin_end(tag);
  if (raw_body > tag) {
    QUIRE_ASSIGN_OR_RETURN(token, raw_block(raw_body, token));
    return !token.text.empty();
  }
  const bool has_sign = tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+');
  const size_t inside = tag + (has_sign ? 3 : 2);
  if (source_[tag + 1] == '#') {
    QUIRE_RETURN_IF_ERROR(skip_comment(inside));
    return false;
  }
  const bool variable = source_[tag + 1] == '{';
  token.kind = variable ? TokenKind::kVariableBegin : TokenKind::kBlockBegin;
  state_ = variable ? State::kVariable : State::kBlock;
  brackets_.clear();
  advance(inside);
  return true;
}

Status Lexer::skip_comment(size_t inside) {
  const size_t close = source_.find("#}", inside);
  if (close == std::string::npos) return error("missing end of comment");
  const char sign = close > inside ? source_[close - 1] : '\0';
  size_t end = close + 2;
  if (sign == '-') {
    end = skip_space(end);
  } else if (sign != '+' && end < source_.size() && source_[end] == '\n') {
    ++end;
  }
  advance(end);
  return Status();
}

// End of a {% raw %} tag at `tag`, or `tag` if it is another one.
size_t Lexer::raw_begin_end(size_t tag) const {
  if (source_[tag + 1] != '%') return tag;
  size_t at = tag + 2;
  if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
  at = skip_space(at);
  if (!starts_with(at, "raw")) return tag;
  at = skip_space(at + 3);
  if (starts_with(at, "-%}")) return skip_space(at + 3);
  return starts_with(at, "%}") ? at + 2 : tag;
}

// The first {% endraw %} behind `from`: where it begins and ends.
bool Lexer::find_raw_end(size_t from, size_t& tag, size_t& end) const {
  for (tag = source_.find("{%", from); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
    size_t at = tag + 2;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    at = skip_space(at);
    if (!starts_with(at, "endraw")) continue;
    at = skip_space(at + 6);
    end = match_tag_end(at, "%}", true, true);
    if (end > at) return true;
  }
  return false;
}

Result<Token> Lexer::raw_block(size_t body_begin, Token token) {
  size_t tag = 0, end = 0;
  if (!find_raw_end(body_begin, tag, end)) return error("missing end of raw block");
  advance(body_begin);
  token.kind = TokenKind::kData;
  token.line = line_;
  token.text = text_before_tag(body_begin, tag, source_[tag + 2], true);
  advance(end);
  return token;
}

// End of a closing tag with its white-space control, or `at` if none stands here.
size_t Lexer::match_tag_end(size_t at, std::string_view closing, bool allows_plus, bool trims_newline) const {
  const char sign = at < source_.size() ? source_[at] : '\0';
  const bool has_sign = sign == '-' || (sign == '+' && allows_plus);
  if (has_sign && starts_with(at + 1, closing)) {
    const size_t end = at + 1 + closing.size();
    return sign == '-' ? skip_space(end) : end;
  }
  if (!starts_with(at, closing)) return at;
  const size_t end = at + closing.size();
  return trims_newline && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
}

Result<bool> Lexer::leave_tag(Token& token) {
  if (!brackets_.empty()) return false;
  const bool block = state_ == State::kBlock;
  const size_t end = match_tag_end(at_, block ? "%}" : "}}", block, block);
  if (end == at_) return false;
  token.kind = block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd;
  state_ = State::kText;
  advance(end);
  return true;
}

Result<Token> Lexer::next_in_tag() {
  Token token{TokenKind::kEnd, line_, {}};
  QUIRE_ASSIGN_OR_RETURN(bool left, leave_tag(token));
  if (!left) {
    advance(skip_space(at_));
    token.line = line_;
    QUIRE_ASSIGN_OR_RETURN(left, leave_tag(token));
  }
  if (left || at_ >= source_.size()) return token;
  const char c = source_[at_];
  if (is_ascii_digit(c)) return number_token();
  if (c == '\'' || c == '"') return string_token();
  if (begins_name(c)) return name_token();
  return operator_token();
}

Result<Token> Lexer::number_token() {
  const size_t float_end = match_float(source_, at_);
  const bool is_float = float_end > at_;
  const size_t end = is_float ? float_end : match_digits(source_, at_);
  // Python's 0x1F and 1_000, and what is no number in Python either.
  const bool leading_zero = !is_float && end - at_ > 1 && source_[at_] == '0';
  if (leading_zero || (end < source_.size() && begins_name(source_[end]))) {
    return error("a number that begins with '" + source_.substr(at_, std::min<size_t>(end - at_, 20) + 1) +
                 "' is not what quire knows");
  }
  Token token{is_float ? TokenKind::kFloat : TokenKind::kInteger, line_, source_.substr(at_, end - at_)};
  advance(end);
  return token;
}

Token Lexer::name_token() {
  size_t end = at_;
  while (end < source_.size() && (begins_name(source_[end]) || is_ascii_digit(source_[end]))) ++end;
  Token token{TokenKind::kName, line_, source_.substr(at_, end - at_)};
  advance(end);
  return token;
}

Result<Token> Lexer::string_token() {
  const char quote = source_[at_];
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) return error("a string does not end");
  Token token{TokenKind::kString, line_, {}};
  auto text = unescape_string_literal(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
  if (!text.ok()) return error(text.status().message());
  token.text = std::move(*text);
  advance(end + 1);
  return token;
}

Result<Token> Lexer::operator_token() {
  static constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/",
                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
  for (const std::string_view op : kOperators) {
    if (!starts_with(at_, op)) continue;
    const char c = op[0];
    if (c == '(' || c == '[' || c == '{') brackets_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty()) return error("unexpected '" + std::string(op) + "'");
      if (brackets_.back() != c) {
        return error("unexpected '" + std::string(op) + "', expected '" + std::string(1, brackets_.back()) + "'");
      }
      brackets_.pop_back();
    }
    Token token{TokenKind::kOperator, line_, std::string(op)};
    advance(at_ + op.size());
    return token;
  }
  const size_t length = utf8_length(source_[at_]);
  return error("unexpected character '" + source_.substr(at_, length) + "'");
}

}  // namespace quire::jinja
