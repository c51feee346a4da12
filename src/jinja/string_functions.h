// Functions on strings that methods and filters share. Each takes its arguments as the method of that name does.
#pragma once

#include "jinja/runtime.h"

namespace quire::jinja {

// The argument `index` as a string; fails for other kinds, naming `function`.
Result<Value> string_argument(const Call& call, size_t index, std::string_view function);
// The argument `index` as an integer, or `absent` where it was not given.
Result<Int> int_argument(const Call& call, size_t index, Int absent);

// Searching, cutting, case: string_search.cc.
Result<Value> upper(Call& call);
Result<Value> lower(Call& call);
Result<Value> capitalize(Call& call);
Result<Value> title(Call& call);
Result<Value> starts_with(Call& call);
Result<Value> ends_with(Call& call);
Result<Value> find_text(Call& call);
Result<Value> find_last_text(Call& call);
Result<Value> count_text(Call& call);
Result<Value> replace(Call& call);
Result<Value> strip(Call& call);
Result<Value> strip_left(Call& call);
Result<Value> strip_right(Call& call);
Result<Value> remove_prefix(Call& call);
Result<Value> remove_suffix(Call& call);

// Splitting and joining: string_split.cc.
Result<Value> split(Call& call);
Result<Value> split_last(Call& call);
Result<Value> split_lines(Call& call);
Result<Value> join(Call& call);

// Byte ranges of the pieces of a string.
using Pieces = std::vector<std::pair<size_t, size_t>>;
// The lines of a string, with or without their ends, as splitlines() cuts them; at most kMaxListItems + 1.
Pieces lines_of(std::string_view bytes, bool keep_ends);

}  // namespace quire::jinja
