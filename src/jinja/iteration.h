// Walking over values: what `for`, `in` and the sequence filters share.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "jinja/runtime.h"

namespace quire::jinja {

// Python's iter(): characters of a string, items of a list, keys of a dict, nothing of an undefined value; an
// iterator is itself. Fails for the rest.
Result<Ref<Iterator>> iterate(Runtime& runtime, const Value& value);
bool iterable(const Value& value);

Result<std::vector<Value>> collect(Runtime& runtime, const Value& value);

// Python's len().
Result<int64_t> length(Runtime& runtime, const Value& value);

// Python's reversed(), which a generator does not have.
Result<Value> reversed(Runtime& runtime, const Value& value);

// An iterator over items that exist already.
Value make_iterator(Heap& heap, std::vector<Value> items);

// A generator: `step` is asked for one item after the other, and not before someone asks for it, so that errors
// appear (or not) where Python raises them.
using GeneratorStep = std::function<Result<std::optional<Value>>(Runtime&)>;
Value make_generator(Heap& heap, GeneratorStep step);

// A generator whose items are all computed when the first is asked for.
Value make_deferred(Heap& heap, std::function<Result<std::vector<Value>>(Runtime&)> compute);

}  // namespace quire::jinja
