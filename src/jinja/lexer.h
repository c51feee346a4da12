// Tokens of a template, with jinja2's white-space rules under trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire::jinja {

enum class TokenKind : uint8_t {
  kData,           // text outside of tags
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // the name, operator or number; strings and data are ready for use

  bool is(TokenKind wanted) const { return kind == wanted; }
  bool is_operator(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// How messages call a token.
std::string describe(const Token& token);

class Lexer {
 public:
  // Takes valid UTF-8.
  explicit Lexer(std::string_view source);

  // One token after the other, kEnd for ever at the end.
  Result<Token> next();

 private:
  enum class State : uint8_t { kText, kBlock, kVariable };

  Result<Token> next_in_text();
  Result<Token> next_in_tag();
  Result<bool> enter_tag(size_t tag, Token& data);
  Result<Token> raw_block(size_t body_begin, Token data);
  Status skip_comment(size_t tag);
  Result<bool> leave_tag(Token& token);
  Result<Token> operator_token();
  Result<Token> string_token();
  Result<Token> number_token();
  Token name_token();

  size_t find_tag(size_t from) const;
  size_t raw_begin_end(size_t tag) const;
  bool find_raw_end(size_t from, size_t& tag, size_t& end) const;
  std::string text_before_tag(size_t begin, size_t tag, char sign, bool trims_line) const;
  size_t match_tag_end(size_t at, std::string_view closing, bool allows_plus, bool trims_newline) const;
  size_t skip_space(size_t at) const;
  bool starts_with(size_t at, std::string_view text) const { return source_.compare(at, text.size(), text) == 0; }
  void advance(size_t to);
  Status error(std::string message) const;

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  State state_ = State::kText;
  bool line_starting_ = true;   // the last token ended with a line break, or there was none
  std::vector<char> brackets_;  // closing brackets that are due
};

}  // namespace quire::jinja
