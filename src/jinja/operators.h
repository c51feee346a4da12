// The operators of expressions on any kinds of values.
#pragma once

#include "jinja/runtime.h"

namespace quire::jinja {

enum class BinaryOperator : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo };

Result<Value> apply(Runtime& runtime, BinaryOperator op, const Value& left, const Value& right);
Result<Value> negate(const Value& value);

// format % argument, where a tuple is a list of arguments: percent_format.cc.
Result<Value> percent_format(Runtime& runtime, const Text& format, const Value& argument);

}  // namespace quire::jinja
