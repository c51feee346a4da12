// Walking the names of a syntax tree in the order of the source, as far as scope analysis cares.
#pragma once

#include <functional>

#include "jinja/ast.h"

namespace quire::jinja {

enum class NameUse : uint8_t { kLoad, kStore };

// Calls visit(name, use) for every name below a body, in nested scopes too.
using NameVisitor = std::function<void(const Expr&, NameUse)>;
void for_each_name(const Body& body, const NameVisitor& visit);
void for_each_name(const Statement& statement, const NameVisitor& visit);

}  // namespace quire::jinja
