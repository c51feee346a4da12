// ==, <, in and truth of values, as Python has them.
#pragma once

#include <optional>
#include <vector>

#include "jinja/runtime.h"

namespace quire::jinja {

bool truthy(const Value& value);

// Fails only where values nest too deep or the step budget is gone.
Result<bool> equal(Runtime& runtime, const Value& left, const Value& right);

// Negative, zero, positive; nothing when NaN makes them unordered. Fails for kinds Python does not order.
Result<std::optional<int>> compare(Runtime& runtime, const Value& left, const Value& right);

// item in container
Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

bool same_object(const Value& left, const Value& right);

// The order in which Python's sorted() puts `keys`: stable, by "<" alone.
Result<std::vector<size_t>> sorted_order(Runtime& runtime, const std::vector<Value>& keys, bool reverse);

}  // namespace quire::jinja
