// Functions on strings that methods and filters share. Each takes its arguments as the method of that name does.
#pragma once

#include "jinja/runtime.h"

namespace quire::jinja {

// The argument `index` as a string; fails for other kinds, naming `function`.
Result<Value> string_argument(const Call& call, size_t index, std::string_view function);
// The argument `index` as an integer, or `absent` where it was not given (or is none, if that is allowed).
Result<Int> int_argument(const Call& call, size_t index, Int absent, bool none_is_absent = false);

// Case, classes, padding: string_case.cc.
Result<Value> upper(Call& call);
Result<Value> lower(Call& call);
Result<Value> capitalize(Call& call);
Result<Value> title(Call& call);
Result<Value> swap_case(Call& call);
Result<Value> case_fold(Call& call);
Result<Value> is_lower_text(Call& call);
Result<Value> is_upper_text(Call& call);
Result<Value> is_title_text(Call& call);
Result<Value> is_alpha_text(Call& call);
Result<Value> is_alphanumeric_text(Call& call);
Result<Value> is_decimal_text(Call& call);
Result<Value> is_digit_text(Call& call);
Result<Value> is_numeric_text(Call& call);
Result<Value> is_space_text(Call& call);
Result<Value> is_ascii_text(Call& call);
Result<Value> is_printable_text(Call& call);
Result<Value> is_identifier_text(Call& call);
Result<Value> center(Call& call);
Result<Value> left_justify(Call& call);
Result<Value> right_justify(Call& call);
Result<Value> zero_fill(Call& call);
Result<Value> expand_tabs(Call& call);

// Searching and cutting: string_search.cc.
Result<Value> starts_with(Call& call);
Result<Value> ends_with(Call& call);
Result<Value> find_text(Call& call);
Result<Value> find_last_text(Call& call);
Result<Value> index_text(Call& call);
Result<Value> index_last_text(Call& call);
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
Result<Value> partition(Call& call);
Result<Value> partition_last(Call& call);
Result<Value> join(Call& call);

// "{}".format(...): string_format.cc.
Result<Value> format(Call& call);
Result<Value> format_map(Call& call);

// Byte ranges of the pieces of a string.
using Pieces = std::vector<std::pair<size_t, size_t>>;
// The lines of a string, with or without their ends, as splitlines() cuts them; at most kMaxListItems + 1.
Pieces lines_of(std::string_view bytes, bool keep_ends);

}  // namespace quire::jinja
