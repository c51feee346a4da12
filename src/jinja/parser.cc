#include "jinja/parser.h"

#include <algorithm>

#include "jinja/known.h"

namespace quire::jinja {

Result<Program> Parser::run() {
  QUIRE_ASSIGN_OR_RETURN(current_, lexer_.next());
  QUIRE_ASSIGN_OR_RETURN(program_.body, parse_body({}));
  return std::move(program_);
}

Result<Token> Parser::advance() {
  Token taken = std::move(current_);
  if (has_second_) {
    current_ = std::move(second_);
    has_second_ = false;
  } else {
    QUIRE_ASSIGN_OR_RETURN(current_, lexer_.next());
  }
  return taken;
}

Result<Token> Parser::peek_second() {
  if (!has_second_) {
    QUIRE_ASSIGN_OR_RETURN(second_, lexer_.next());
    has_second_ = true;
  }
  return second_;
}

Status Parser::error(int line, std::string message) const {
  return invalid_argument("line " + std::to_string(line) + ": " + std::move(message));
}

Status Parser::refused(int line, std::string message) const {
  return unsupported("line " + std::to_string(line) + ": " + std::move(message));
}

Status Parser::unexpected() const { return error(current_.line, "unexpected " + describe(current_)); }

Status Parser::check_nesting() const {
  if (nesting_ <= kMaxSourceNesting) return Status();
  return error(current_.line,
               "statements and expressions nest deeper than " + std::to_string(kMaxSourceNesting) + " levels");
}

Result<Token> Parser::expect(TokenKind kind, std::string_view what) {
  if (!current_.is(kind)) {
    return error(current_.line, "expected " + std::string(what) + ", got " + describe(current_));
  }
  return advance();
}

Status Parser::expect_operator(std::string_view op) {
  if (!current_.is_operator(op)) {
    return error(current_.line, "expected '" + std::string(op) + "', got " + describe(current_));
  }
  return advance().status();
}

Result<bool> Parser::skip_operator(std::string_view op) {
  if (!current_.is_operator(op)) return false;
  QUIRE_RETURN_IF_ERROR(advance().status());
  return true;
}

Result<bool> Parser::skip_name(std::string_view name) {
  if (!current_.is_name(name)) return false;
  QUIRE_RETURN_IF_ERROR(advance().status());
  return true;
}

// Text and tags up to one of `end_tags`, which is left as the current token, or to the end of the template.
Result<Body> Parser::parse_body(EndTags end_tags) {
  Body body;
  std::unique_ptr<Output> output;
  const auto flush = [&] {
    if (output != nullptr) body.push_back(std::move(output));
  };
  while (!current_.is(TokenKind::kEnd)) {
    if (current_.is(TokenKind::kBlockBegin)) {
      flush();
      QUIRE_RETURN_IF_ERROR(advance().status());
      const bool ends =
          std::any_of(end_tags.begin(), end_tags.end(), [this](std::string_view tag) { return current_.is_name(tag); });
      if (ends) return body;
      QUIRE_ASSIGN_OR_RETURN(auto statement, parse_statement());
      body.push_back(std::move(statement));
      QUIRE_RETURN_IF_ERROR(expect(TokenKind::kBlockEnd, "'%}'").status());
      continue;
    }
    if (output == nullptr) output = std::make_unique<Output>(current_.line);
    QUIRE_RETURN_IF_ERROR(parse_output(*output));
  }
  flush();
  if (end_tags.size() > 0) {
    return error(current_.line, "unexpected end of the template, '" + open_tags_.back() + "' is still open");
  }
  return body;
}

Status Parser::parse_output(Output& output) {
  if (current_.is(TokenKind::kData)) {
    QUIRE_ASSIGN_OR_RETURN(Token data, advance());
    output.pieces.push_back({std::move(data.text), nullptr});
    return Status();
  }
  if (!current_.is(TokenKind::kVariableBegin)) return unexpected();
  QUIRE_RETURN_IF_ERROR(advance().status());
  QUIRE_ASSIGN_OR_RETURN(auto expression, parse_tuple({}));
  output.pieces.push_back({{}, std::move(expression)});
  return expect(TokenKind::kVariableEnd, "'}}'").status();
}

// The rest of an opening tag and the body up to its end tag.
Result<Body> Parser::parse_block(EndTags end_tags, bool drop_end) {
  QUIRE_RETURN_IF_ERROR(skip_operator(":").status());
  QUIRE_RETURN_IF_ERROR(expect(TokenKind::kBlockEnd, "'%}'").status());
  QUIRE_ASSIGN_OR_RETURN(auto body, parse_body(end_tags));
  if (drop_end) QUIRE_RETURN_IF_ERROR(advance().status());
  return body;
}

Status Parser::unknown_tag() const {
  std::string message = not_known("tag", current_.text).message();
  if (!open_tags_.empty()) message += "; '" + open_tags_.back() + "' is still open";
  return refused(current_.line, std::move(message));
}

Result<StatementPtr> Parser::parse_statement() {
  const Nested nested(*this);
  QUIRE_RETURN_IF_ERROR(check_nesting());
  if (!current_.is(TokenKind::kName))
    return error(current_.line, "expected the name of a tag, got " + describe(current_));
  using Parse = Result<StatementPtr> (Parser::*)();
  static constexpr std::pair<std::string_view, Parse> kTags[] = {{"if", &Parser::parse_if},
                                                                 {"for", &Parser::parse_for},
                                                                 {"set", &Parser::parse_set},
                                                                 {"macro", &Parser::parse_macro},
                                                                 {"filter", &Parser::parse_filter_block},
                                                                 {"break", &Parser::parse_loop_control},
                                                                 {"continue", &Parser::parse_loop_control},
                                                                 {"generation", &Parser::parse_generation}};
  for (const auto& [tag, parse_tag] : kTags) {
    if (current_.text != tag) continue;
    open_tags_.emplace_back(tag);
    auto statement = (this->*parse_tag)();
    open_tags_.pop_back();
    return statement;
  }
  return unknown_tag();
}

Result<StatementPtr> Parser::parse_for() {
  QUIRE_ASSIGN_OR_RETURN(const Token tag, advance());
  auto node = std::make_unique<For>(tag.line);
  QUIRE_ASSIGN_OR_RETURN(node->target, parse_target(false, "in"));
  QUIRE_ASSIGN_OR_RETURN(const bool has_in, skip_name("in"));
  if (!has_in) return error(current_.line, "expected 'in', got " + describe(current_));
  TupleForm form;
  form.with_condition = false;
  form.end_name = "recursive";
  QUIRE_ASSIGN_OR_RETURN(node->iterable, parse_tuple(form));
  QUIRE_ASSIGN_OR_RETURN(const bool filtered, skip_name("if"));
  if (filtered) {
    QUIRE_ASSIGN_OR_RETURN(node->condition, parse_expression());
  }
  if (current_.is_name("recursive")) {
    return refused(current_.line, not_known("mark of a loop", "recursive").message());
  }
  QUIRE_ASSIGN_OR_RETURN(node->body, parse_block({"endfor", "else"}, false));
  QUIRE_ASSIGN_OR_RETURN(const Token end, advance());
  if (end.is_name("else")) {
    QUIRE_ASSIGN_OR_RETURN(node->otherwise, parse_block({"endfor"}, true));
  }
  return StatementPtr(std::move(node));
}

Result<StatementPtr> Parser::parse_if() {
  auto node = std::make_unique<If>(current_.line);
  while (true) {
    QUIRE_RETURN_IF_ERROR(advance().status());
    If::Branch branch;
    TupleForm form;
    form.with_condition = false;
    QUIRE_ASSIGN_OR_RETURN(branch.condition, parse_tuple(form));
    QUIRE_ASSIGN_OR_RETURN(branch.body, parse_block({"elif", "else", "endif"}, false));
    node->branches.push_back(std::move(branch));
    if (current_.is_name("elif")) continue;
    QUIRE_ASSIGN_OR_RETURN(const Token end, advance());
    if (end.is_name("else")) {
      QUIRE_ASSIGN_OR_RETURN(node->otherwise, parse_block({"endif"}, true));
    }
    return StatementPtr(std::move(node));
  }
}

Result<StatementPtr> Parser::parse_set() {
  QUIRE_ASSIGN_OR_RETURN(const Token tag, advance());
  QUIRE_ASSIGN_OR_RETURN(auto target, parse_target(true));
  QUIRE_ASSIGN_OR_RETURN(const bool assigns, skip_operator("="));
  if (assigns) {
    auto node = std::make_unique<Set>(tag.line);
    node->target = std::move(target);
    QUIRE_ASSIGN_OR_RETURN(node->value, parse_tuple({}));
    return StatementPtr(std::move(node));
  }
  auto node = std::make_unique<Block>(tag.line);
  node->target = std::move(target);
  QUIRE_ASSIGN_OR_RETURN(node->filter, parse_filter_chain(nullptr, false));
  QUIRE_ASSIGN_OR_RETURN(node->body, parse_block({"endset"}, true));
  return StatementPtr(std::move(node));
}

Status Parser::parse_signature(Macro& macro) {
  QUIRE_RETURN_IF_ERROR(expect_operator("("));
  while (!current_.is_operator(")")) {
    if (!macro.parameters.empty()) QUIRE_RETURN_IF_ERROR(expect_operator(","));
    QUIRE_ASSIGN_OR_RETURN(auto parameter, parse_target_name());
    if (parameter->name == "caller")
      return refused(parameter->line, not_known("variable of a macro", "caller").message());
    for (const auto& earlier : macro.parameters) {
      if (earlier->name == parameter->name) {
        return error(parameter->line, "the parameter '" + parameter->name + "' is given twice");
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const bool has_default, skip_operator("="));
    if (has_default) {
      QUIRE_ASSIGN_OR_RETURN(auto value, parse_expression());
      macro.defaults.push_back(std::move(value));
    } else if (!macro.defaults.empty()) {
      return error(parameter->line, "a parameter without a default follows one that has one");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  return expect_operator(")");
}

Result<StatementPtr> Parser::parse_macro() {
  QUIRE_ASSIGN_OR_RETURN(const Token tag, advance());
  auto node = std::make_unique<Macro>(tag.line);
  QUIRE_ASSIGN_OR_RETURN(const auto name, parse_target_name());
  node->name = name->name;
  QUIRE_RETURN_IF_ERROR(parse_signature(*node));
  QUIRE_ASSIGN_OR_RETURN(node->body, parse_block({"endmacro"}, true));
  return StatementPtr(std::move(node));
}

Result<StatementPtr> Parser::parse_filter_block() {
  QUIRE_ASSIGN_OR_RETURN(const Token tag, advance());
  auto node = std::make_unique<Block>(tag.line);
  QUIRE_ASSIGN_OR_RETURN(node->filter, parse_filter_chain(nullptr, true));
  QUIRE_ASSIGN_OR_RETURN(node->body, parse_block({"endfilter"}, true));
  return StatementPtr(std::move(node));
}

Result<StatementPtr> Parser::parse_generation() {
  QUIRE_ASSIGN_OR_RETURN(const Token tag, advance());
  auto node = std::make_unique<Block>(tag.line);
  QUIRE_ASSIGN_OR_RETURN(node->body, parse_block({"endgeneration"}, true));
  return StatementPtr(std::move(node));
}

Result<StatementPtr> Parser::parse_loop_control() {
  QUIRE_ASSIGN_OR_RETURN(const Token tag, advance());
  const auto kind = tag.text == "break" ? StatementKind::kBreak : StatementKind::kContinue;
  return std::make_unique<Statement>(kind, tag.line);
}

Result<ExprPtr> Parser::parse_target_name() {
  QUIRE_ASSIGN_OR_RETURN(const Token token, expect(TokenKind::kName, "a name"));
  auto name = std::make_unique<Expr>(ExprKind::kName, token.line, token.text);
  QUIRE_RETURN_IF_ERROR(check_target(*name));
  return name;
}

Result<ExprPtr> Parser::parse_target(bool with_namespace, std::string_view end_name) {
  TupleForm tuple;
  tuple.simplified = true;
  tuple.with_namespace = with_namespace;
  tuple.end_name = end_name;
  QUIRE_ASSIGN_OR_RETURN(auto target, parse_tuple(tuple));
  QUIRE_RETURN_IF_ERROR(check_target(*target));
  return target;
}

Status Parser::check_target(const Expr& target) const {
  static constexpr std::string_view kReserved[] = {"true", "false", "none", "True", "False", "None"};
  switch (target.kind) {
    case ExprKind::kNamespaceAttribute:
      return Status();
    case ExprKind::kName:
      if (target.name == "loop" && std::find(open_tags_.begin(), open_tags_.end(), "for") != open_tags_.end()) {
        return error(target.line, "'loop' cannot be assigned to in a loop");
      }
      if (std::find(std::begin(kReserved), std::end(kReserved), target.name) == std::end(kReserved)) return Status();
      break;
    case ExprKind::kTuple:
      for (const auto& item : target.children) QUIRE_RETURN_IF_ERROR(check_target(*item));
      return Status();
    default:
      break;
  }
  return error(target.line, "this cannot be assigned to");
}

}  // namespace quire::jinja
