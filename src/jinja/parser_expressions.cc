#include <algorithm>
#include <limits>

#include "jinja/attributes.h"
#include "jinja/number.h"
#include "jinja/parser_internal.h"

namespace quire::jinja {

void Parser::adopt(Expr& parent, ExprPtr& place, ExprPtr child) {
  if (child != nullptr) parent.height = std::max(parent.height, child->height + 1);
  place = std::move(child);
}

void Parser::adopt(Expr& parent, CallArguments& place, CallArguments arguments) {
  const auto measure = [&parent](const ExprPtr& child) {
    if (child != nullptr) parent.height = std::max(parent.height, child->height + 1);
  };
  for (const auto& argument : arguments.positional) measure(argument);
  for (const auto& [name, argument] : arguments.named) measure(argument);
  measure(arguments.more_positional);
  measure(arguments.more_named);
  place = std::move(arguments);
}

Result<ExprPtr> Parser::finish(ExprPtr node) const {
  if (node->height <= kMaxSourceNesting) return node;
  return error(node->line, "an expression nests deeper than " + std::to_string(kMaxSourceNesting) + " levels");
}

ExprPtr Parser::make_constant(int line, Literal value) {
  auto constant = std::make_unique<Constant>(line, value);
  constant->index = static_cast<int>(program_.constants.size());
  program_.constants.push_back(std::move(value));
  return constant;
}

bool Parser::at_tuple_end(std::string_view end_name) const {
  if (current_.is(TokenKind::kVariableEnd) || current_.is(TokenKind::kBlockEnd) || current_.is_operator(")"))
    return true;
  return !end_name.empty() && current_.is_name(end_name);
}

Result<ExprPtr> Parser::parse_tuple(TupleForm form) {
  auto tuple = std::make_unique<Items>(ExprKind::kTuple, current_.line);
  bool is_tuple = false;
  while (true) {
    if (!tuple->items.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (at_tuple_end(form.end_name)) break;
    QUIRE_ASSIGN_OR_RETURN(auto item, form.simplified       ? parse_primary(form.with_namespace)
                                      : form.with_condition ? parse_expression()
                                                            : parse_or());
    adopt(*tuple, tuple->items.emplace_back(), std::move(item));
    if (!current_.is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !tuple->items.empty()) return std::move(tuple->items[0]);
  if (!is_tuple && !form.in_parentheses) {
    return error(current_.line, "expected an expression, got " + describe(current_));
  }
  return finish(std::move(tuple));
}

Result<ExprPtr> Parser::parse_conditional() {
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting(current_.line));
  int line = current_.line;
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_or());
  while (current_.is_name("if")) {
    QUIRE_RETURN_IF_ERROR(advance().status());
    auto conditional = std::make_unique<Conditional>(line);
    adopt(*conditional, conditional->then, std::move(node));
    QUIRE_ASSIGN_OR_RETURN(auto condition, parse_or());
    adopt(*conditional, conditional->condition, std::move(condition));
    QUIRE_ASSIGN_OR_RETURN(const bool has_else, skip_name("else"));
    if (has_else) {
      QUIRE_ASSIGN_OR_RETURN(auto otherwise, parse_conditional());
      adopt(*conditional, conditional->otherwise, std::move(otherwise));
    }
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(conditional)));
    line = current_.line;
  }
  return node;
}

Result<ExprPtr> Parser::parse_or() {
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_and());
  while (current_.is_name("or")) {
    auto logical = std::make_unique<Logical>(current_.line);
    QUIRE_RETURN_IF_ERROR(advance().status());
    adopt(*logical, logical->left, std::move(node));
    QUIRE_ASSIGN_OR_RETURN(auto right, parse_and());
    adopt(*logical, logical->right, std::move(right));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(logical)));
  }
  return node;
}

Result<ExprPtr> Parser::parse_and() {
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_not());
  while (current_.is_name("and")) {
    auto logical = std::make_unique<Logical>(current_.line);
    logical->is_and = true;
    QUIRE_RETURN_IF_ERROR(advance().status());
    adopt(*logical, logical->left, std::move(node));
    QUIRE_ASSIGN_OR_RETURN(auto right, parse_not());
    adopt(*logical, logical->right, std::move(right));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(logical)));
  }
  return node;
}

Result<ExprPtr> Parser::parse_not() {
  if (!current_.is_name("not")) return parse_comparison();
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting(current_.line));
  QUIRE_ASSIGN_OR_RETURN(const Token token, advance());
  auto node = std::make_unique<Unary>(ExprKind::kNot, token.line);
  QUIRE_ASSIGN_OR_RETURN(auto operand, parse_not());
  adopt(*node, node->operand, std::move(operand));
  return finish(std::move(node));
}

Result<ExprPtr> Parser::parse_comparison() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},  {"<", Comparison::kLess},
      {">", Comparison::kGreater}, {"<=", Comparison::kLessEqual}, {">=", Comparison::kGreaterEqual}};
  auto compare = std::make_unique<Compare>(current_.line);
  QUIRE_ASSIGN_OR_RETURN(auto first, parse_sum());
  adopt(*compare, compare->first, std::move(first));
  while (true) {
    const auto op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                 [this](const auto& row) { return current_.is_operator(row.first); });
    Comparison comparison = Comparison::kIn;
    if (op != std::end(kOperators)) {
      comparison = op->second;
    } else if (current_.is_name("not")) {
      QUIRE_ASSIGN_OR_RETURN(const Token second, peek_second());
      if (!second.is_name("in")) break;
      QUIRE_RETURN_IF_ERROR(advance().status());
      comparison = Comparison::kNotIn;
    } else if (!current_.is_name("in")) {
      break;
    }
    QUIRE_RETURN_IF_ERROR(advance().status());
    QUIRE_ASSIGN_OR_RETURN(auto operand, parse_sum());
    compare->rest.emplace_back(comparison, nullptr);
    adopt(*compare, compare->rest.back().second, std::move(operand));
  }
  if (compare->rest.empty()) return std::move(compare->first);
  return finish(std::move(compare));
}

Result<ExprPtr> Parser::parse_binary(std::initializer_list<std::pair<std::string_view, BinaryOperator>> operators,
                                     Result<ExprPtr> (Parser::*operand)()) {
  QUIRE_ASSIGN_OR_RETURN(auto node, (this->*operand)());
  while (true) {
    const auto op = std::find_if(operators.begin(), operators.end(),
                                 [this](const auto& row) { return current_.is_operator(row.first); });
    if (op == operators.end()) return node;
    auto binary = std::make_unique<Binary>(current_.line);
    binary->op = op->second;
    QUIRE_RETURN_IF_ERROR(advance().status());
    adopt(*binary, binary->left, std::move(node));
    QUIRE_ASSIGN_OR_RETURN(auto right, (this->*operand)());
    adopt(*binary, binary->right, std::move(right));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(binary)));
  }
}

Result<ExprPtr> Parser::parse_sum() {
  return parse_binary({{"+", BinaryOperator::kAdd}, {"-", BinaryOperator::kSubtract}}, &Parser::parse_concat);
}

Result<ExprPtr> Parser::parse_concat() {
  auto concat = std::make_unique<Concat>(current_.line);
  while (true) {
    QUIRE_ASSIGN_OR_RETURN(auto part, parse_product());
    adopt(*concat, concat->parts.emplace_back(), std::move(part));
    QUIRE_ASSIGN_OR_RETURN(const bool more, skip_operator("~"));
    if (!more) break;
  }
  if (concat->parts.size() == 1) return std::move(concat->parts[0]);
  return finish(std::move(concat));
}

Result<ExprPtr> Parser::parse_product() {
  return parse_binary({{"*", BinaryOperator::kMultiply},
                       {"/", BinaryOperator::kDivide},
                       {"//", BinaryOperator::kFloorDivide},
                       {"%", BinaryOperator::kModulo}},
                      &Parser::parse_power);
}

Result<ExprPtr> Parser::parse_power() {
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_unary(true));
  while (current_.is_operator("**")) {
    auto binary = std::make_unique<Binary>(current_.line);
    binary->op = BinaryOperator::kPower;
    QUIRE_RETURN_IF_ERROR(advance().status());
    adopt(*binary, binary->left, std::move(node));
    QUIRE_ASSIGN_OR_RETURN(auto right, parse_unary(true));
    adopt(*binary, binary->right, std::move(right));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(binary)));
  }
  return node;
}

Result<ExprPtr> Parser::parse_unary(bool with_filters) {
  ExprPtr node;
  if (current_.is_operator("-") || current_.is_operator("+")) {
    const Nested nested(*this);
    QUIRE_RETURN_IF_ERROR(check_nesting(current_.line));
    QUIRE_ASSIGN_OR_RETURN(const Token sign, advance());
    auto unary = std::make_unique<Unary>(sign.text == "-" ? ExprKind::kNegate : ExprKind::kPlus, sign.line);
    QUIRE_ASSIGN_OR_RETURN(auto operand, parse_unary(false));
    adopt(*unary, unary->operand, std::move(operand));
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(unary)));
  } else {
    QUIRE_ASSIGN_OR_RETURN(node, parse_primary(false));
  }
  QUIRE_ASSIGN_OR_RETURN(node, parse_postfix(std::move(node)));
  if (with_filters) return parse_filters_and_tests(std::move(node));
  return node;
}

Result<ExprPtr> Parser::parse_primary(bool with_namespace) {
  if (current_.is(TokenKind::kName)) return parse_name(with_namespace);
  if (current_.is(TokenKind::kString)) return parse_string();
  if (current_.is(TokenKind::kInteger) || current_.is(TokenKind::kFloat)) return parse_number();
  if (current_.is_operator("[")) return parse_list();
  if (current_.is_operator("{")) return parse_dict();
  if (!current_.is_operator("(")) return unexpected();
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting(current_.line));
  QUIRE_RETURN_IF_ERROR(advance().status());
  TupleForm form;
  form.in_parentheses = true;
  QUIRE_ASSIGN_OR_RETURN(auto node, parse_tuple(form));
  QUIRE_RETURN_IF_ERROR(expect_operator(")"));
  return node;
}

Result<ExprPtr> Parser::parse_name(bool with_namespace) {
  QUIRE_ASSIGN_OR_RETURN(const Token token, advance());
  const std::string& name = token.text;
  if (name == "true" || name == "True") return make_constant(token.line, true);
  if (name == "false" || name == "False") return make_constant(token.line, false);
  if (name == "none" || name == "None") return make_constant(token.line, std::monostate());
  if (!with_namespace || !current_.is_operator(".")) return ExprPtr(std::make_unique<Name>(token.line, name));
  QUIRE_RETURN_IF_ERROR(advance().status());
  QUIRE_ASSIGN_OR_RETURN(const Token attribute, expect(TokenKind::kName, "the name of an attribute"));
  return ExprPtr(std::make_unique<NamespaceAttribute>(token.line, name, attribute.text));
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
  const auto value = parse_int(token.text, 0);
  if (!value) return error(token.line, "the integer " + token.text.substr(0, 50) + " has more than 128 bits");
  return make_constant(token.line, *value);
}

Result<ExprPtr> Parser::parse_list() {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  auto list = std::make_unique<Items>(ExprKind::kList, open.line);
  while (!current_.is_operator("]")) {
    if (!list->items.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (current_.is_operator("]")) break;
    QUIRE_ASSIGN_OR_RETURN(auto item, parse_expression());
    adopt(*list, list->items.emplace_back(), std::move(item));
  }
  QUIRE_RETURN_IF_ERROR(expect_operator("]"));
  return finish(std::move(list));
}

Result<ExprPtr> Parser::parse_dict() {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  auto dict = std::make_unique<DictDisplay>(open.line);
  while (!current_.is_operator("}")) {
    if (!dict->entries.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    if (current_.is_operator("}")) break;
    QUIRE_ASSIGN_OR_RETURN(auto key, parse_expression());
    QUIRE_RETURN_IF_ERROR(expect_operator(":"));
    QUIRE_ASSIGN_OR_RETURN(auto value, parse_expression());
    auto& entry = dict->entries.emplace_back();
    adopt(*dict, entry.first, std::move(key));
    adopt(*dict, entry.second, std::move(value));
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

Result<ExprPtr> Parser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (current_.is_operator("|")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_filter_chain(std::move(node), false));
    } else if (current_.is_name("is")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_test(std::move(node)));
    } else if (current_.is_operator("(")) {
      QUIRE_ASSIGN_OR_RETURN(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::parse_attribute(ExprPtr object) {
  QUIRE_ASSIGN_OR_RETURN(const Token dot, advance());
  QUIRE_ASSIGN_OR_RETURN(const Token name, advance());
  if (name.is(TokenKind::kName)) {
    auto node = std::make_unique<Attribute>(dot.line);
    adopt(*node, node->object, std::move(object));
    node->name = name.text;
    return finish(std::move(node));
  }
  const auto index = name.is(TokenKind::kInteger) ? parse_int(name.text, 0) : std::nullopt;
  if (!index) return error(name.line, "expected a name or number behind '.', got " + describe(name));
  auto node = std::make_unique<Item>(dot.line);
  adopt(*node, node->object, std::move(object));
  adopt(*node, node->key, make_constant(name.line, *index));
  return finish(std::move(node));
}

// A bound of a slice, or null where the slice has none.
Result<ExprPtr> Parser::parse_optional_bound() {
  if (current_.is_operator(":") || current_.is_operator("]") || current_.is_operator(",")) return ExprPtr();
  return parse_expression();
}

Result<ExprPtr> Parser::parse_subscript(ExprPtr object) {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  auto keys = std::make_unique<Items>(ExprKind::kTuple, open.line);
  while (!current_.is_operator("]")) {
    if (!keys->items.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    QUIRE_ASSIGN_OR_RETURN(auto first, parse_optional_bound());
    if (first == nullptr && !current_.is_operator(":")) return unexpected();
    if (!current_.is_operator(":")) {
      adopt(*keys, keys->items.emplace_back(), std::move(first));
      continue;
    }
    auto slice = std::make_unique<SliceItem>(open.line);
    adopt(*slice, slice->start, std::move(first));
    QUIRE_RETURN_IF_ERROR(advance().status());
    QUIRE_ASSIGN_OR_RETURN(auto stop, parse_optional_bound());
    adopt(*slice, slice->stop, std::move(stop));
    QUIRE_ASSIGN_OR_RETURN(const bool has_step, skip_operator(":"));
    if (has_step) {
      QUIRE_ASSIGN_OR_RETURN(auto step, parse_optional_bound());
      adopt(*slice, slice->step, std::move(step));
    }
    if (!keys->items.empty() || !current_.is_operator("]"))
      return error(open.line, "a slice cannot be part of a tuple");
    QUIRE_RETURN_IF_ERROR(advance().status());
    adopt(*slice, slice->object, std::move(object));
    return finish(std::move(slice));
  }
  QUIRE_RETURN_IF_ERROR(advance().status());
  auto node = std::make_unique<Item>(open.line);
  adopt(*node, node->object, std::move(object));
  adopt(*node, node->key, keys->items.size() == 1 ? std::move(keys->items[0]) : ExprPtr(std::move(keys)));
  return finish(std::move(node));
}

Result<CallArguments> Parser::parse_arguments() {
  QUIRE_ASSIGN_OR_RETURN(const Token open, advance());
  CallArguments arguments;
  bool first = true;
  while (!current_.is_operator(")")) {
    if (!first) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    first = false;
    if (current_.is_operator(")")) break;
    const bool after_star = arguments.more_positional != nullptr, after_stars = arguments.more_named != nullptr;
    if (current_.is_operator("*") && !after_star && !after_stars) {
      QUIRE_RETURN_IF_ERROR(advance().status());
      QUIRE_ASSIGN_OR_RETURN(arguments.more_positional, parse_expression());
    } else if (current_.is_operator("**") && !after_stars) {
      QUIRE_RETURN_IF_ERROR(advance().status());
      QUIRE_ASSIGN_OR_RETURN(arguments.more_named, parse_expression());
    } else {
      QUIRE_ASSIGN_OR_RETURN(const Token second, peek_second());
      const bool named = current_.is(TokenKind::kName) && second.is_operator("=");
      const bool in_order = named ? !after_stars : !after_star && !after_stars && arguments.named.empty();
      if (!in_order) return error(open.line, "the arguments of a call are in the wrong order");
      if (!named) {
        QUIRE_ASSIGN_OR_RETURN(auto value, parse_expression());
        arguments.positional.push_back(std::move(value));
        continue;
      }
      QUIRE_ASSIGN_OR_RETURN(const Token name, advance());
      QUIRE_RETURN_IF_ERROR(advance().status());
      QUIRE_ASSIGN_OR_RETURN(auto value, parse_expression());
      for (const auto& [earlier, unused] : arguments.named) {
        if (earlier == name.text) return error(name.line, "the argument '" + name.text + "' is given twice");
      }
      arguments.named.emplace_back(name.text, std::move(value));
    }
  }
  QUIRE_RETURN_IF_ERROR(expect_operator(")"));
  return arguments;
}

Result<ExprPtr> Parser::parse_call(ExprPtr callee) {
  const int line = current_.line;
  if (callee->kind == ExprKind::kAttribute && is_unsupported_method(static_cast<const Attribute&>(*callee).name)) {
    return not_supported(line, "the method '" + static_cast<const Attribute&>(*callee).name + "' is not supported");
  }
  auto node = std::make_unique<CallExpr>(line);
  QUIRE_ASSIGN_OR_RETURN(auto arguments, parse_arguments());
  adopt(*node, node->callee, std::move(callee));
  adopt(*node, node->arguments, std::move(arguments));
  return finish(std::move(node));
}

Result<std::string> Parser::parse_dotted_name() {
  QUIRE_ASSIGN_OR_RETURN(Token token, expect(TokenKind::kName, "a name"));
  while (current_.is_operator(".")) {
    QUIRE_RETURN_IF_ERROR(advance().status());
    QUIRE_ASSIGN_OR_RETURN(const Token part, expect(TokenKind::kName, "a name"));
    token.text += "." + part.text;
  }
  return std::move(token.text);
}

Result<ExprPtr> Parser::parse_filter_chain(ExprPtr node, bool begun) {
  while (begun || current_.is_operator("|")) {
    if (!begun) QUIRE_RETURN_IF_ERROR(advance().status());
    begun = false;
    auto filter = std::make_unique<Applied>(ExprKind::kFilter, current_.line);
    QUIRE_ASSIGN_OR_RETURN(filter->name, parse_dotted_name());
    adopt(*filter, filter->subject, std::move(node));
    if (current_.is_operator("(")) {
      QUIRE_ASSIGN_OR_RETURN(auto arguments, parse_arguments());
      adopt(*filter, filter->arguments, std::move(arguments));
    }
    QUIRE_ASSIGN_OR_RETURN(node, finish(std::move(filter)));
  }
  return node;
}

Result<ExprPtr> Parser::parse_test(ExprPtr subject) {
  QUIRE_ASSIGN_OR_RETURN(const Token is, advance());
  QUIRE_ASSIGN_OR_RETURN(const bool negated, skip_name("not"));
  auto test = std::make_unique<Applied>(ExprKind::kTest, is.line);
  QUIRE_ASSIGN_OR_RETURN(test->name, parse_dotted_name());
  adopt(*test, test->subject, std::move(subject));
  const bool continues = current_.is_name("else") || current_.is_name("or") || current_.is_name("and");
  const bool has_operand = current_.is(TokenKind::kName) || current_.is(TokenKind::kString) ||
                           current_.is(TokenKind::kInteger) || current_.is(TokenKind::kFloat) ||
                           current_.is_operator("[") || current_.is_operator("{");
  if (current_.is_operator("(")) {
    QUIRE_ASSIGN_OR_RETURN(auto arguments, parse_arguments());
    adopt(*test, test->arguments, std::move(arguments));
  } else if (has_operand && !continues) {
    if (current_.is_name("is")) return error(current_.line, "tests with 'is' cannot be chained");
    QUIRE_ASSIGN_OR_RETURN(auto operand, parse_primary(false));
    QUIRE_ASSIGN_OR_RETURN(operand, parse_postfix(std::move(operand)));
    adopt(*test, test->arguments.positional.emplace_back(), std::move(operand));
  }
  if (!negated) return finish(std::move(test));
  auto negation = std::make_unique<Unary>(ExprKind::kNot, is.line);
  adopt(*negation, negation->operand, std::move(test));
  return finish(std::move(negation));
}

}  // namespace quire::jinja
