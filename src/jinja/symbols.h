// The variables of one scope of a template and where their values come from.
//
// Jinja decides at compile time what a name means: a scope that assigns a name has a variable of its own from its
// very start, copied from the enclosing scope if that has one, and a name that no scope assigns is looked up among
// the rendering's variables when the scope that reads it is entered. These rules follow jinja2's idtracking.py.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jinja/ast.h"

namespace quire::jinja {

// What owns an activation at run time: the template, a macro, the condition of a loop. Scopes
// inside one function share its slots; equal names of equal depth share one slot.
class FunctionSlots {
 public:
  explicit FunctionSlots(const FunctionSlots* enclosing) : enclosing_(enclosing) {}
  int slot(int level, const std::string& name);
  int size() const { return static_cast<int>(slots_.size()); }
  // How many functions lie between this one and `outer`.
  int hops_to(const FunctionSlots& outer) const;

 private:
  const FunctionSlots* enclosing_;
  std::map<std::pair<int, std::string>, int> slots_;
};

class Symbols {
 public:
  Symbols(Symbols* parent, FunctionSlots& function);

  // A tentative extension of this scope, for one branch of an `if`; join_branches() takes over what it found.
  Symbols branch() { return Symbols(*this); }
  void join_branches(const std::vector<Symbols*>& branches);

  void load(const std::string& name);
  void store(const std::string& name);
  int declare_parameter(const std::string& name);

  // Whether the name, which resolve() has seen, is looked up among the rendering's variables.
  bool is_from_context(const std::string& name) const;
  // Where the code of `function`, which is this scope's or one inside it, finds the variable.
  SlotRef resolve(const std::string& name, const FunctionSlots& function);
  Scope scope() const;

 private:
  explicit Symbols(Symbols& base);

  struct Found {
    int slot;
    const Symbols* scope;
  };
  struct Load {
    Scope::Load kind;
    std::string name;
    SlotRef source;
  };
  std::optional<int> find_here(const std::string& name) const;
  std::optional<Found> find(const std::string& name) const;
  bool stores(const std::string& name) const;
  int define(const std::string& name, Load load);
  Load alias(const Found& outer) const;

  int level_;
  Symbols* parent_;
  Symbols* base_ = nullptr;  // of a branch: the scope it extends
  FunctionSlots& function_;
  std::map<std::string, int> slots_;
  std::map<int, Load> loads_;
  std::set<std::string> stores_;
};

}  // namespace quire::jinja
