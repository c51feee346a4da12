// Text to syntax tree, by recursive descent: statements in parser.cc, expressions in parser_expressions.cc. A construct that
// is not Jinja, or that quire does not know, is an error with line and name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace quire::jinja {

class Parser {
 public:
  explicit Parser(std::string_view source) : lexer_(source) {}
  // The tree without scopes; compile() of compiler.h adds them. Once only.
  Result<Program> run();

 private:
  using EndTags = std::initializer_list<std::string_view>;

  // Statements.
  Result<Body> parse_body(EndTags end_tags);
  Status parse_output(Output& output);
  Result<Body> parse_block(EndTags end_tags, bool drop_end);
  Result<StatementPtr> parse_statement();
  Result<StatementPtr> parse_for();
  Result<StatementPtr> parse_if();
  Result<StatementPtr> parse_set();
  Result<StatementPtr> parse_macro();
  Result<StatementPtr> parse_filter_block();
  Result<StatementPtr> parse_generation();
  Result<StatementPtr> parse_loop_control();
  Status parse_signature(Macro& macro);
  Result<ExprPtr> parse_target(bool with_namespace, std::string_view end_name = {});
  Result<ExprPtr> parse_target_name();
  Status check_target(const Expr& target) const;
  Status unknown_tag() const;

  // Expressions, loosest binding first.
  struct TupleForm {
    bool simplified = false;  // names and literals only: targets
    bool with_namespace = false;
    bool with_condition = true;  // a if b else c
    bool in_parentheses = false;
    std::string_view end_name;  // a name that ends the tuple
  };
  Result<ExprPtr> parse_tuple(TupleForm form);
  Result<ExprPtr> parse_expression();
  Result<ExprPtr> parse_or();
  Result<ExprPtr> parse_and();
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_comparison();
  Result<ExprPtr> parse_sum();
  Result<ExprPtr> parse_concat();
  Result<ExprPtr> parse_product();
  Result<ExprPtr> parse_filtered();
  Result<ExprPtr> parse_unary();
  Result<ExprPtr> parse_primary(bool with_namespace);
  Result<ExprPtr> parse_name(bool with_namespace);
  Result<ExprPtr> parse_string();
  Result<ExprPtr> parse_number();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  Result<ExprPtr> parse_postfix(ExprPtr node);
  Result<ExprPtr> parse_attribute(ExprPtr object);
  Result<ExprPtr> parse_subscript(ExprPtr object);
  Result<ExprPtr> parse_call(ExprPtr callee);
  Status parse_arguments(Expr& call);
  // A chain of filters behind `subject`; `begun`: the first stands without its "|".
  Result<ExprPtr> parse_filter_chain(ExprPtr subject, bool begun);
  Result<ExprPtr> parse_test(ExprPtr subject);
  struct OperatorRow {
    std::string_view text;
    BinaryOperator op;
  };
  Result<ExprPtr> parse_binary(std::initializer_list<OperatorRow> operators, Result<ExprPtr> (Parser::*operand)());
  Result<ExprPtr> parse_logical(std::string_view word, ExprKind kind, Result<ExprPtr> (Parser::*operand)());
  Result<ExprPtr> parse_two(ExprPtr node, ExprPtr left, Result<ExprPtr> (Parser::*operand)());
  bool at_tuple_end(std::string_view end_name) const;
  // Refuses a tree that is too high.
  Result<ExprPtr> finish(ExprPtr node) const;
  ExprPtr make_constant(int line, Literal value);

  // Tokens.
  Result<Token> advance();
  Result<Token> peek_second();
  Result<Token> expect(TokenKind kind, std::string_view what);
  Status expect_operator(std::string_view op);
  Result<bool> skip_operator(std::string_view op);
  Result<bool> skip_name(std::string_view name);
  Status error(int line, std::string message) const;
  Status refused(int line, std::string message) const;
  Status unexpected() const;

  // One level of recursion as long as it lives.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) { ++parser_.nesting_; }
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };
  Status check_nesting() const;

  Lexer lexer_;
  Token current_;
  Token second_;  // the token behind current_, where has_second_
  bool has_second_ = false;
  int nesting_ = 0;
  std::vector<std::string> open_tags_;
  Program program_;
};

}  // namespace quire::jinja
