#include "jinja/symbols.h"

namespace quire::jinja {

int FunctionSlots::slot(int level, const std::string& name) {
  return slots_.try_emplace({level, name}, static_cast<int>(slots_.size())).first->second;
}

int FunctionSlots::hops_to(const FunctionSlots& outer) const {
  int hops = 0;
  for (const FunctionSlots* at = this; at != &outer; at = at->enclosing_) ++hops;
  return hops;
}

Symbols::Symbols(Symbols* parent, FunctionSlots& function)
    : level_(parent == nullptr ? 0 : parent->level_ + 1), parent_(parent), function_(function) {}

Symbols::Symbols(Symbols& base) : level_(base.level_), parent_(base.parent_), base_(&base), function_(base.function_) {}

std::optional<int> Symbols::find_here(const std::string& name) const {
  for (const Symbols* at = this; at != nullptr; at = at->base_) {
    if (const auto found = at->slots_.find(name); found != at->slots_.end()) return found->second;
  }
  return std::nullopt;
}

std::optional<Symbols::Found> Symbols::find(const std::string& name) const {
  for (const Symbols* at = this; at != nullptr; at = at->parent_) {
    if (const auto slot = at->find_here(name)) return Found{*slot, at};
  }
  return std::nullopt;
}

bool Symbols::stores(const std::string& name) const {
  for (const Symbols* at = this; at != nullptr; at = at->base_) {
    if (at->stores_.contains(name)) return true;
  }
  return false;
}

int Symbols::define(const std::string& name, Load load) {
  const int slot = function_.slot(level_, name);
  slots_[name] = slot;
  loads_[slot] = std::move(load);
  return slot;
}

Symbols::Load Symbols::alias(const Found& outer) const {
  return {Scope::Load::kAlias, {}, {function_.hops_to(outer.scope->function_), outer.slot}};
}

void Symbols::load(const std::string& name) {
  if (!find(name)) define(name, {Scope::Load::kContext, name, {}});
}

void Symbols::store(const std::string& name) {
  stores_.insert(name);
  if (find_here(name)) return;
  const auto outer = parent_ != nullptr ? parent_->find(name) : std::nullopt;
  define(name, outer ? alias(*outer) : Load{Scope::Load::kUnset, {}, {}});
}

int Symbols::declare_parameter(const std::string& name) {
  stores_.insert(name);
  return define(name, {Scope::Load::kParameter, {}, {}});
}

void Symbols::join_branches(const std::vector<Symbols*>& branches) {
  std::set<std::string> stored;
  for (const Symbols* branch : branches) {
    for (const auto& name : branch->stores_) {
      if (!stores(name)) stored.insert(name);
    }
  }
  for (const Symbols* branch : branches) {
    for (const auto& [name, slot] : branch->slots_) slots_[name] = slot;
    for (const auto& [slot, load] : branch->loads_) loads_[slot] = load;
    stores_.insert(branch->stores_.begin(), branch->stores_.end());
  }
  // Not every way through the branches sets these, so they need a value from outside to begin with.
  for (const auto& name : stored) {
    const auto outer = parent_ != nullptr ? parent_->find(name) : std::nullopt;
    loads_[*find_here(name)] = outer ? alias(*outer) : Load{Scope::Load::kContext, name, {}};
  }
}

// Branches have been joined into the scope they extend, so a slot's load stands there.
bool Symbols::is_from_context(const std::string& name) const {
  const Found found = *find(name);
  return found.scope->loads_.at(found.slot).kind == Scope::Load::kContext;
}

SlotRef Symbols::resolve(const std::string& name, const FunctionSlots& function) {
  load(name);
  const Found found = *find(name);
  return {function.hops_to(found.scope->function_), found.slot};
}

Scope Symbols::scope() const {
  Scope scope;
  for (const auto& [slot, load] : loads_) scope.entries.push_back({slot, load.kind, load.name, load.source});
  return scope;
}

}  // namespace quire::jinja
