#include <algorithm>

#include "jinja/known.h"
#include "jinja/number.h"
#include "jinja/parser.h"

namespace quire::jinja {
namespace {

ExprPtr make(ExprKind kind, int line, std::string name = {}) {
  return std::make_unique<Expr>(kind, line, std::move(name));
}

}  // namespace

Result<ExprPtr> Parser::finish(ExprPtr node) const {
  if (node->height <= kMaxSourceNesting) return node;
  return error(node->line, "an expression nests deeper than " + std::to_string(kMaxSourceNesting) + " levels");
}

ExprPtr Parser::make_constant(int line, Literal value) {
  auto constant = make(ExprKind::kConstant, line);
  constant->constant = static_cast<int>(program_.constants.size());
  program_.constants.push_back(std::move(value));
  return constant;
}

bool Parser::at_tuple_end(std::string_view end_name) const {
  if (current_.is(TokenKind::kVariableEnd) || current_.is(TokenKind::kBlockEnd) || current_.is_operator(")"))
    return true;
  return !end_name.empty() && current_.is_name(end_name);
}

Result<ExprPtr> Parser::parse_tuple(TupleForm form) {
  auto tuple = make(ExprKind::kTuple, current_.line);
  bool is_tuple = false;
  while (true) {
    if (!tuple->children.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (at_tuple_end(form.end_name)) break;
    QUIRE_ASSIGN_OR_RETURN(auto item, form.simplified       ? parse_primary(form.with_namespace)
                                      : form.with_condition ? parse_expression()
                                                            : parse_or());
    tuple->add(std::move(item));
    if (!current_.is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !tuple->children.empty()) return std::move(tuple->children[0]);
  if (!is_tuple && !form.in_parentheses) {
    return error(current_.line, "expected an expression, got " + describe(current_));
  }
  return finish(std::move(tuple));
}

// then if condition else otherwise
Result<ExprPtr> Parser::parse_expression() {
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting());
  int line = current_.line;
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_or());
  while (current_.is_name("if")) {
    QUIRE_RETURN_IF_ERROR(advance().status());
    auto conditional = make(ExprKind::kConditional, line);
    QUIRE_ASSIGN_OR_RETURN(auto condition, parse_or());
    conditional->add(std::move(condition));
    conditional->add(std::move(node));
    QUIRE_ASSIGN_OR_RETURN(const bool has_else, skip_name("else"));
    ExprPtr otherwise;
    if (has_else) {
      QUIRE_ASSIGN_OR_RETURN(otherwise, parse_expression());
    }
    conditional->add(std::move(otherwise));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(conditional)));
    line = current_.line;
  }
  return node;
}

// The rest of "left operator right", whose operator is the current token.
Result<ExprPtr> Parser::parse_two(ExprPtr node, ExprPtr left, Result<ExprPtr> (Parser::*operand)()) {
  QUIRE_RETURN_IF_ERROR(advance().status());
  node->add(std::move(left));
  QUIRE_ASSIGN_OR_RETURN(auto right, (this->*operand)());
  node->add(std::move(right));
  return finish(std::move(node));
}

Result<ExprPtr> Parser::parse_logical(std::string_view word, ExprKind kind, Result<ExprPtr> (Parser::*operand)()) {
  QUIRE_ASSIGN_OR_RETURN(auto node, (this->*operand)());
  while (current_.is_name(word)) {
    QUIRE_ASSIGN_OR_RETURN(node, parse_two(make(kind, current_.line), std::move(node), operand));
  }
  return node;
}

Result<ExprPtr> Parser::parse_or() { return parse_logical("or", ExprKind::kOr, &Parser::parse_and); }
Result<ExprPtr> Parser::parse_and() { return parse_logical("and", ExprKind::kAnd, &Parser::parse_not); }

Result<ExprPtr> Parser::parse_not() {
  if (!current_.is_name("not")) return parse_comparison();
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting());
  QUIRE_ASSIGN_OR_RETURN(const Token token, advance());
  auto node = make(ExprKind::kNot, token.line);
  QUIRE_ASSIGN_OR_RETURN(auto operand, parse_not());
  node->add(std::move(operand));
  return finish(std::move(node));
}

Result<ExprPtr> Parser::parse_comparison() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},  {"<", Comparison::kLess},
      {">", Comparison::kGreater}, {"<=", Comparison::kLessEqual}, {">=", Comparison::kGreaterEqual}};
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_sum());
  for (bool compares = false;; compares = true) {
    const auto op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                 [this](const auto& row) { return current_.is_operator(row.first); });
    auto compare = make(ExprKind::kCompare, current_.line);
    compare->comparison = Comparison::kIn;
    if (op != std::end(kOperators)) {
      compare->comparison = op->second;
    } else if (current_.is_name("not")) {
      QUIRE_ASSIGN_OR_RETURN(const Token second, peek_second());
      if (!second.is_name("in")) return node;
      QUIRE_RETURN_IF_ERROR(advance().status());
      compare->comparison = Comparison::kNotIn;
    } else if (!current_.is_name("in")) {
      return node;
    }
    if (compares) return refused(current_.line, "a chain of comparisons is not what quire knows; join them by 'and'");
    QUIRE_ASSIGN_OR_RETURN(node, parse_two(std::move(compare), std::move(node), &Parser::parse_sum));
  }
}

Result<ExprPtr> Parser::parse_binary(std::initializer_list<OperatorRow> operators,
                                     Result<ExprPtr> (Parser::*operand)()) {
  QUIRE_ASSIGN_OR_RETURN(auto node, (this->*operand)());
  while (true) {
    const auto row = std::find_if(operators.begin(), operators.end(),
                                  [this](const OperatorRow& known) { return current_.is_operator(known.text); });
    if (row == operators.end()) return node;
    auto binary = make(ExprKind::kBinary, current_.line);
    binary->op = row->op;
    QUIRE_ASSIGN_OR_RETURN(node, parse_two(std::move(binary), std::move(node), operand));
  }
}

Result<ExprPtr> Parser::parse_sum() {
  return parse_binary({{"+", BinaryOperator::kAdd}, {"-", BinaryOperator::kSubtract}}, &Parser::parse_concat);
}

Result<ExprPtr> Parser::parse_concat() {
  auto concat = make(ExprKind::kConcat, current_.line);
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(auto part, parse_product());
    concat->add(std::move(part));
    QUIRE_ASSIGN_OR_RETURN(const bool more, skip_operator("~"));
    if (!more) break;
  }
  if (concat->children.size() == 1) return std::move(concat->children[0]);
  return finish(std::move(concat));
}

Result<ExprPtr> Parser::parse_product() {
  return parse_binary({{"*", BinaryOperator::kMultiply},
                       {"/", BinaryOperator::kDivide},
                       {"//", BinaryOperator::kFloorDivide},
                       {"%", BinaryOperator::kModulo}},
                      &Parser::parse_filtered);
}

Result<ExprPtr> Parser::parse_filtered() {
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_unary());
  while (true) {
    if (current_.is_operator("|")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_filter_chain(std::move(node), false));
    } else if (current_.is_name("is")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_test(std::move(node)));
    } else if (current_.is_operator("(")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_call(std::move(node)));
    } else if (current_.is_operator("**")) {
      return refused(current_.line, not_known("operator", "**").message());
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::parse_unary() {
  if (current_.is_operator("+")) return refused(current_.line, not_known("sign", "+").message());
  ExprPtr node;
  if (current_.is_operator("-")) {
    const Nested nested(*this);
    QUIRE_RETURN_IF_ERROR(check_nesting());
    QUIRE_ASSIGN_OR_RETURN(const Token sign, advance());
    node = make(ExprKind::kNegate, sign.line);
    QUIRE_ASSIGN_OR_RETURN(auto operand, parse_unary());
    node->add(std::move(operand));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(node)));
  } else {
    QUIRE_ASSIGN_OR_RETURN(node, parse_primary(false));
  }
  return parse_postfix(std::move(node));
}

Result<ExprPtr> Parser::parse_primary(bool with_namespace) {
  if (current_.is(TokenKind::kName)) return parse_name(with_namespace);
  if (current_.is(TokenKind::kString)) return parse_string();
  if (current_.is(TokenKind::kInteger) || current_.is(TokenKind::kFloat)) return parse_number();
  if (current_.is_operator("[")) return parse_list();
  if (current_.is_operator("{")) return parse_dict();
  if (!current_.is_operator("(")) return unexpected();
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting());
  QUIRE_RETURN_IF_ERROR(advance().status());
  TupleForm form;
  form.in_parentheses = true;
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_tuple(form));
  QUIRE_RETURN_IF_ERROR(expect_operator(")"));
  return node;
}

Result<ExprPtr> Parser::parse_name(bool with_namespace) {
  QUIRE_ASSIGN_OR_RETURN(const Token token, advance());
  if (token.is_name("true") || token.is_name("True")) return make_constant(token.line, true);
  if (token.is_name("false") || token.is_name("False")) return make_constant(token.line, false);
  if (token.is_name("none") || token.is_name("None")) return make_constant(token.line, std::monostate());
  auto node = make(ExprKind::kName, token.line, token.text);
  if (!with_namespace || !current_.is_operator(".")) return node;
  QUIRE_RETURN_IF_ERROR(advance().status());
  QUIRE_ASSIGN_OR_RETURN(const Token attribute, expect(TokenKind::kName, "the name of an attribute"));
  auto target = make(ExprKind::kNamespaceAttribute, token.line, attribute.text);
  target->add(std::move(node));
  return target;
}

Result<ExprPtr> Parser::parse_string() {
  QUIRE_ASSIGN_OR_RETURN(Token token, advance());
  while (current_.is(TokenKind::kString)) {
    QUIRE_ASSIGN_OR_RETURN(const Token more, advance());
    token.text += more.text;
  }
  return make_constant(token.line, std::move(token.text));
}

Result<ExprPtr> Parser::parse_number() {
  QUIRE_ASSIGN_OR_RETURN(const Token token, advance());
  if (token.is(TokenKind::kFloat)) return make_constant(token.line, parse_float(token.text).value());
  const auto value = parse_int(token.text);
  if (!value) return error(token.line, "the integer " + token.text.substr(0, 50) + " has more than 64 bits");
  return make_constant(token.line, *value);
}

Result<ExprPtr> Parser::parse_list() {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  auto list = make(ExprKind::kList, open.line);
  while (!current_.is_operator("]")) {
    if (!list->children.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (current_.is_operator("]")) break;
    QUIRE_ASSIGN_OR_RETURN(auto item, parse_expression());
    list->add(std::move(item));
  }
  QUIRE_RETURN_IF_ERROR(expect_operator("]"));
  return finish(std::move(list));
}

Result<ExprPtr> Parser::parse_dict() {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  auto dict = make(ExprKind::kDict, open.line);
  while (!current_.is_operator("}")) {
    if (!dict->children.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (current_.is_operator("}")) break;
    QUIRE_ASSIGN_OR_RETURN(auto key, parse_expression());
    QUIRE_RETURN_IF_ERROR(expect_operator(":"));
    QUIRE_ASSIGN_OR_RETURN(auto value, parse_expression());
    dict->add(std::move(key));
    dict->add(std::move(value));
  }
  QUIRE_RETURN_IF_ERROR(expect_operator("}"));
  return finish(std::move(dict));
}

Result<ExprPtr> Parser::parse_postfix(ExprPtr node) {
  while (true) {
    if (current_.is_operator(".")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_attribute(std::move(node)));
    } else if (current_.is_operator("[")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_subscript(std::move(node)));
    } else if (current_.is_operator("(")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::parse_attribute(ExprPtr object) {
  QUIRE_ASSIGN_OR_RETURN(const Token dot, advance());
  QUIRE_ASSIGN_OR_RETURN(const Token name, expect(TokenKind::kName, "a name behind '.'"));
  const bool of_loop = object->kind == ExprKind::kName && object->name == "loop";
  if (name.text.starts_with("__") || (of_loop && is_refused_loop_attribute(name.text))) {
    return refused(name.line, not_known("attribute", of_loop ? "loop." + name.text : name.text).message());
  }
  auto node = make(ExprKind::kAttribute, dot.line, name.text);
  node->add(std::move(object));
  return finish(std::move(node));
}

Result<ExprPtr> Parser::parse_subscript(ExprPtr object) {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  ExprPtr parts[3];  // the key, or the bounds of a slice
  size_t colons = 0;
  while (!current_.is_operator("]")) {
    if (current_.is_operator(",")) return refused(open.line, "a tuple as a key in [] is not what quire knows");
    if (current_.is_operator(":") && colons < 2) {
      QUIRE_RETURN_IF_ERROR(advance().status());
      ++colons;
    } else if (parts[colons] == nullptr) {
      QUIRE_ASSIGN_OR_RETURN(parts[colons], parse_expression());
    } else {
      return unexpected();
    }
  }
  if (colons == 0 && parts[0] == nullptr) return unexpected();
  QUIRE_RETURN_IF_ERROR(advance().status());
  auto node = make(colons == 0 ? ExprKind::kItem : ExprKind::kSlice, open.line);
  node->add(std::move(object));
  for (size_t i = 0; i < (colons == 0 ? 1 : 3); ++i) node->add(std::move(parts[i]));
  return finish(std::move(node));
}

Status Parser::parse_arguments(Expr& call) {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  const size_t begin = call.children.size();
  while (!current_.is_operator(")")) {
    if (call.children.size() > begin) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (current_.is_operator(")")) break;
    if (current_.is_operator("*") || current_.is_operator("**")) {
      return refused(current_.line, "'" + current_.text + "' before an argument is not what quire knows");
    }
    QUIRE_ASSIGN_OR_RETURN(const Token second, peek_second());
    ExprPtr named;
    if (current_.is(TokenKind::kName) && second.is_operator("=")) {
      named = make(ExprKind::kKeyword, current_.line, current_.text);
      QUIRE_RETURN_IF_ERROR(advance().status());
      QUIRE_RETURN_IF_ERROR(advance().status());
    } else if (call.children.size() > begin && call.children.back()->kind == ExprKind::kKeyword) {
      return error(open.line, "the arguments of a call are in the wrong order");
    }
    QUIRE_ASSIGN_OR_RETURN(auto value, parse_expression());
    if (named == nullptr) {
      call.add(std::move(value));
      continue;
    }
    for (size_t i = begin; i < call.children.size(); ++i) {
      if (call.children[i]->kind == ExprKind::kKeyword && call.children[i]->name == named->name) {
        return error(named->line, "the argument '" + named->name + "' is given twice");
      }
    }
    named->add(std::move(value));
    call.add(std::move(named));
  }
  return expect_operator(")");
}

Result<ExprPtr> Parser::parse_call(ExprPtr callee) {
  if (callee->kind == ExprKind::kAttribute && is_refused_method(callee->name)) {
    return refused(callee->line, not_known("method", callee->name).message());
  }
  auto node = make(ExprKind::kCall, current_.line);
  node->add(std::move(callee));
  QUIRE_RETURN_IF_ERROR(parse_arguments(*node));
  return finish(std::move(node));
}

Result<ExprPtr> Parser::parse_filter_chain(ExprPtr node, bool begun) {
  while (begun || current_.is_operator("|")) {
    if (!begun) QUIRE_RETURN_IF_ERROR(advance().status());
    begun = false;
    QUIRE_ASSIGN_OR_RETURN(const Token name, expect(TokenKind::kName, "the name of a filter"));
    auto filter = make(ExprKind::kFilter, name.line, name.text);
    filter->add(std::move(node));
    if (current_.is_operator("(")) QUIRE_RETURN_IF_ERROR(parse_arguments(*filter));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(filter)));
  }
  return node;
}

Result<ExprPtr> Parser::parse_test(ExprPtr subject) {
  QUIRE_ASSIGN_OR_RETURN(const Token is, advance());
  QUIRE_ASSIGN_OR_RETURN(const bool negated, skip_name("not"));
  QUIRE_ASSIGN_OR_RETURN(const Token name, expect(TokenKind::kName, "the name of a test"));
  auto test = make(ExprKind::kTest, is.line, name.text);
  test->add(std::move(subject));
  const bool continues = current_.is_name("else") || current_.is_name("or") || current_.is_name("and");
  const bool has_operand = current_.is(TokenKind::kName) || current_.is(TokenKind::kString) ||
                           current_.is(TokenKind::kInteger) || current_.is(TokenKind::kFloat) ||
                           current_.is_operator("[") || current_.is_operator("{");
  if (current_.is_operator("(")) {
    QUIRE_RETURN_IF_ERROR(parse_arguments(*test));
  } else if (has_operand && !continues) {
    if (current_.is_name("is")) return error(current_.line, "tests with 'is' cannot be chained");
    QUIRE_ASSIGN_OR_RETURN(auto operand, parse_primary(false));
    QUIRE_ASSIGN_OR_RETURN(operand, parse_postfix(std::move(operand)));
    test->add(std::move(operand));
  }
  if (!negated) return finish(std::move(test));
  auto negation = make(ExprKind::kNot, is.line);
  negation->add(std::move(test));
  return finish(std::move(negation));
}

}  // namespace quire::jinja
