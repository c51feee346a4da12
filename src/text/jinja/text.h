// Strings of a template, which remember byte by byte whether the template or its caller wrote them.
//
// Almost every string has one author, so the marks are the author of the first byte and the positions where it
// changes; a string without a change owns no further memory. Bytes are valid UTF-8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/code_points.h"
#include "text/jinja/limits.h"

namespace quire::jinja {

enum class Origin : bool { kTemplate, kCaller };

struct Text {
  std::string bytes;
  Origin first_origin = Origin::kTemplate;
  std::vector<size_t> changes;  // ascending byte positions where the origin flips
  bool ascii = true;
  bool markup = false;  // escaped for HTML already: what the filters safe and escape return

  Origin origin_at(size_t at) const;
  // Calls visit(begin, end, origin) for each stretch of one origin within [begin, end).
  template <typename Visitor>
  void for_each_run(size_t begin, size_t end, Visitor visit) const;

  size_t size_code_points() const { return ascii ? bytes.size() : count_code_points(bytes); }
  size_t byte_offset_of(size_t code_point_index) const;
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
  auto change = std::upper_bound(changes.begin(), changes.end(), begin);
  Origin origin = origin_at(begin);
  for (size_t at = begin; at < end; ++change) {
    const size_t run_end = change == changes.end() ? end : std::min(*change, end);
    visit(at, run_end, origin);
    if (run_end == end) return;
    at = run_end;
    origin = origin == Origin::kTemplate ? Origin::kCaller : Origin::kTemplate;
  }
}

}  // namespace quire::jinja
