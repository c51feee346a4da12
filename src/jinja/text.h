// Strings of a template, which remember byte by byte who wrote them.
//
// Almost every string has one author, so the marks are the author of the first byte and the places where another one
// takes over; a string without a change owns no further memory. Bytes are valid UTF-8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/author.h"
#include "jinja/limits.h"
#include "unicode/utf8.h"

namespace quire::jinja {

using Origin = Author;

// The origin of what two authors have a part in.
inline Origin joint_origin(Origin a, Origin b) { return std::max(a, b); }

struct Text {
  std::string bytes;
  Origin first_origin = Origin::kTemplate;
  struct Change {
    size_t at;      // byte position from which on
    Origin origin;  // is the author
    bool operator==(const Change&) const = default;
  };
  std::vector<Change> changes;  // ascending; each to another origin than before
  bool ascii = true;
  bool safe = false;  // what the filter safe returns; see refuse_safe()

  Origin origin_at(size_t at) const;
  Origin joint_origin() const;  // of all of it
  // Calls visit(begin, end, origin) for each stretch of one origin within [begin, end).
  template <typename Visitor>
  void for_each_run(size_t begin, size_t end, Visitor visit) const;

  size_t size_code_points() const { return ascii ? bytes.size() : count_code_points(bytes); }
  size_t byte_offset_of(size_t code_point_index) const;

 private:
  std::vector<Change>::const_iterator first_change_after(size_t at) const {
    return std::upper_bound(changes.begin(), changes.end(), at,
                            [](size_t position, const Change& change) { return position < change.at; });
  }
};

// Builds a Text piece by piece. Past `limit_bytes` it drops what is appended and remembers that it did, so that no
// caller can make it take more memory than a string may have.
class TextBuilder {
 public:
  explicit TextBuilder(size_t limit_bytes = kMaxValueBytes) : limit_bytes_(limit_bytes) {}

  void append(std::string_view bytes, Origin origin);
  void append(const Text& text) { append(text, 0, text.bytes.size()); }
  void append(const Text& text, size_t begin, size_t end);
  void append(char32_t code_point, Origin origin);
  void append_repeated(std::string_view bytes, size_t count, Origin origin);
  void append_repeated(const Text& text, size_t count);

  size_t size() const { return text_.bytes.size(); }
  bool overflowed() const { return overflowed_; }
  Text take() { return std::move(text_); }

 private:
  void begin_run(Origin origin);

  size_t limit_bytes_;
  bool overflowed_ = false;
  Origin last_origin_ = Origin::kTemplate;
  Text text_;
};

Text make_text(std::string bytes, Origin origin);
Text sub_text(const Text& text, size_t begin, size_t end);

template <typename Visitor>
void Text::for_each_run(size_t begin, size_t end, Visitor visit) const {
  auto change = first_change_after(begin);
  Origin origin = change == changes.begin() ? first_origin : std::prev(change)->origin;
  for (size_t at = begin; at < end; ++change) {
    const size_t run_end = change == changes.end() ? end : std::min(change->at, end);
    visit(at, run_end, origin);
    if (run_end == end) return;
    at = run_end;
    origin = change->origin;
  }
}

}  // namespace quire::jinja
