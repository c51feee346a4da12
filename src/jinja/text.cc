#include "jinja/text.h"

#include <cstdint>
#include <cstring>

namespace quire::jinja {
namespace {

bool is_ascii(std::string_view bytes) {
  constexpr size_t kWordBytes = sizeof(uint64_t);
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  for (; at + kWordBytes <= bytes.size(); at += kWordBytes) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, kWordBytes);
    if ((word & kHighBits) != 0) return false;
  }
  for (; at < bytes.size(); ++at) {
    if (static_cast<unsigned char>(bytes[at]) >= 0x80) return false;
  }
  return true;
}

}  // namespace

Origin Text::origin_at(size_t at) const {
  const auto change = first_change_after(at);
  return change == changes.begin() ? first_origin : std::prev(change)->origin;
}

Origin Text::joint_origin() const {
  Origin joint = first_origin;
  for (const Change& change : changes) joint = jinja::joint_origin(joint, change.origin);
  return joint;
}

size_t Text::byte_offset_of(size_t code_point_index) const {
  return ascii ? std::min(code_point_index, bytes.size()) : byte_offset(bytes, code_point_index);
}

void TextBuilder::begin_run(Origin origin) {
  if (text_.bytes.empty()) {
    text_.first_origin = origin;
  } else if (origin != last_origin_) {
    text_.changes.push_back({text_.bytes.size(), origin});
  }
  last_origin_ = origin;
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  if (bytes.size() > limit_bytes_ - text_.bytes.size()) {
    overflowed_ = true;
    return;
  }
  begin_run(origin);
  text_.ascii = text_.ascii && is_ascii(bytes);
  text_.bytes.append(bytes);
}

void TextBuilder::append(const Text& text, size_t begin, size_t end) {
  text.for_each_run(begin, end, [&](size_t from, size_t to, Origin origin) {
    append(std::string_view(text.bytes).substr(from, to - from), origin);
  });
}

void TextBuilder::append(char32_t code_point, Origin origin) {
  std::string bytes;
  append_utf8(code_point, &bytes);
  append(bytes, origin);
}

void TextBuilder::append_repeated(std::string_view bytes, size_t count, Origin origin) {
  if (bytes.empty() || count == 0) return;
  if (count > (limit_bytes_ - text_.bytes.size()) / bytes.size()) {
    overflowed_ = true;
    return;
  }
  begin_run(origin);
  text_.ascii = text_.ascii && is_ascii(bytes);
  text_.bytes.reserve(text_.bytes.size() + count * bytes.size());
  for (size_t i = 0; i < count; ++i) text_.bytes.append(bytes);
}

void TextBuilder::append_repeated(const Text& text, size_t count) {
  if (text.changes.empty()) return append_repeated(text.bytes, count, text.first_origin);
  for (size_t i = 0; i < count && !overflowed_; ++i) append(text);
}

Text make_text(std::string bytes, Origin origin) {
  Text text;
  text.ascii = is_ascii(bytes);
  text.first_origin = origin;
  text.bytes = std::move(bytes);
  return text;
}

Text sub_text(const Text& text, size_t begin, size_t end) {
  TextBuilder builder(end - begin);
  builder.append(text, begin, end);
  Text result = builder.take();
  result.safe = text.safe;
  return result;
}

}  // namespace quire::jinja
