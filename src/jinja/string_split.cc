// Cutting strings into pieces and joining them.
#include <algorithm>

#include "jinja/characters.h"
#include "jinja/iteration.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

bool full(const Pieces& pieces) { return pieces.size() > kMaxListItems; }

Result<Value> list_of_pieces(Call& call, const Pieces& pieces) {
  if (full(pieces)) return out_of_range("the template splits a string into too many pieces");
  QUIRE_RETURN_IF_ERROR(call.runtime.charge_bytes(call.subject.text().bytes.size()));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const auto& [begin, end] : pieces) {
    QUIRE_RETURN_IF_ERROR(call.runtime.charge(1));
    items.push_back(Value::string(call.heap(), sub_text(call.subject.text(), begin, end)));
  }
  return make_list(call.heap(), std::move(items));
}

Pieces split_at(std::string_view bytes, std::string_view separator, Int limit) {
  Pieces pieces;
  size_t begin = 0;
  for (Int done = 0; (limit < 0 || done < limit) && !full(pieces); ++done) {
    const size_t match = bytes.find(separator, begin);
    if (match == std::string_view::npos) break;
    pieces.emplace_back(begin, match);
    begin = match + separator.size();
  }
  pieces.emplace_back(begin, bytes.size());
  return pieces;
}

Pieces split_last_at(std::string_view bytes, std::string_view separator, Int limit) {
  Pieces pieces;
  size_t end = bytes.size();
  for (Int done = 0; (limit < 0 || done < limit) && !full(pieces); ++done) {
    const size_t match = end < separator.size() ? bytes.npos : bytes.rfind(separator, end - separator.size());
    if (match == std::string_view::npos) break;
    pieces.emplace_back(match + separator.size(), end);
    end = match;
  }
  pieces.emplace_back(0, end);
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

size_t skip_space(std::string_view bytes, size_t at, bool space) {
  while (at < bytes.size()) {
    size_t after = at;
    if (is_space(next_code_point(bytes, after)) != space) break;
    at = after;
  }
  return at;
}

Pieces split_space(std::string_view bytes, Int limit) {
  Pieces pieces;
  size_t at = skip_space(bytes, 0, true);
  for (Int done = 0; at < bytes.size() && !full(pieces); ++done) {
    if (limit >= 0 && done >= limit) {
      pieces.emplace_back(at, bytes.size());
      break;
    }
    const size_t end = skip_space(bytes, at, false);
    pieces.emplace_back(at, end);
    at = skip_space(bytes, end, true);
  }
  return pieces;
}

// The separator of split() and rsplit(), once it is known to be given.
Result<std::string> separator_of(const Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Value separator, string_argument(call, 0, "split"));
  if (separator.text().bytes.empty()) return invalid_argument("split(): empty separator");
  return separator.text().bytes;
}

}  // namespace

Result<Value> split(Call& call) {
  const std::string_view bytes = call.subject.text().bytes;
  QUIRE_ASSIGN_OR_RETURN(const Int limit, int_argument(call, 1, -1));
  if (!call.given_not_none(0)) return list_of_pieces(call, split_space(bytes, limit));
  QUIRE_ASSIGN_OR_RETURN(const std::string separator, separator_of(call));
  return list_of_pieces(call, split_at(bytes, separator, limit));
}

Result<Value> split_last(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int limit, int_argument(call, 1, -1));
  if (!call.given_not_none(0)) return unsupported("rsplit() wants a separator in quire");
  QUIRE_ASSIGN_OR_RETURN(const std::string separator, separator_of(call));
  return list_of_pieces(call, split_last_at(call.subject.text().bytes, separator, limit));
}

Result<Value> split_lines(Call& call) {
  QUIRE_ASSIGN_OR_RETURN(const Int keep_ends, int_argument(call, 0, 0));
  return list_of_pieces(call, lines_of(call.subject.text().bytes, keep_ends != 0));
}

Result<Value> join(Call& call) {
  const Text& separator = call.subject.text();
  QUIRE_ASSIGN_OR_RETURN(const auto items, collect(call.runtime, call.args[0]));
  TextBuilder out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(separator);
    if (!items[i].is(Kind::kString)) {
      return invalid_argument("join() wants strings, but item " + std::to_string(i) + " is " +
                              quoted(type_name(items[i])));
    }
    QUIRE_RETURN_IF_ERROR(refuse_safe(items[i]));
    out.append(items[i].text());
  }
  return call.runtime.string(std::move(out));
}

Pieces lines_of(std::string_view bytes, bool keep_ends) {
  Pieces lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size() && !full(lines);) {
    const size_t end = at;
    const char32_t c = next_code_point(bytes, at);
    if (!is_line_break(c)) continue;
    if (c == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    lines.emplace_back(begin, keep_ends ? at : end);
    begin = at;
  }
  if (begin < bytes.size()) lines.emplace_back(begin, bytes.size());
  return lines;
}

}  // namespace quire::jinja
