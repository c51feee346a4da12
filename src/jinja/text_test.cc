#include "jinja/text.h"

#include <gtest/gtest.h>

namespace quire::jinja {
namespace {

constexpr Origin kOurs = Origin::kTemplate, kTheirs = Origin::kCaller;

// Bytes with the caller's runs in [].
std::string marked(const Text& text) {
  std::string result;
  text.for_each_run(0, text.bytes.size(), [&](size_t begin, size_t end, Origin origin) {
    const std::string run = text.bytes.substr(begin, end - begin);
    result += origin == kOurs ? run : "[" + run + "]";
  });
  return result;
}

Text sample() {
  TextBuilder builder;
  builder.append("ab", kOurs);
  builder.append("cd", kTheirs);
  builder.append("ef", kTheirs);
  builder.append("gh", kOurs);
  return builder.take();
}

TEST(Text, MergesNeighboursOfOneOrigin) {
  const Text text = sample();
  EXPECT_EQ(marked(text), "ab[cdef]gh");
  EXPECT_EQ(text.changes, (std::vector<Text::Change>{{2, kTheirs}, {6, kOurs}}));
}

TEST(Text, OneAuthorNeedsNoMarks) {
  EXPECT_TRUE(make_text("abc", kTheirs).changes.empty());
  EXPECT_EQ(marked(make_text("abc", kTheirs)), "[abc]");
}

TEST(Text, KnowsTheOriginOfEveryByte) {
  const Text text = sample();
  std::string origins;
  for (size_t i = 0; i < text.bytes.size(); ++i) origins += text.origin_at(i) == kOurs ? 'o' : 't';
  EXPECT_EQ(origins, "oottttoo");
}

TEST(Text, CutsWithMarks) {
  const std::pair<std::pair<size_t, size_t>, const char*> cases[] = {
      {{0, 8}, "ab[cdef]gh"}, {{1, 3}, "b[c]"}, {{2, 6}, "[cdef]"}, {{3, 5}, "[de]"},
      {{5, 8}, "[f]gh"},      {{6, 8}, "gh"},   {{4, 4}, ""},       {{8, 8}, ""}};
  for (const auto& [range, expected] : cases) {
    EXPECT_EQ(marked(sub_text(sample(), range.first, range.second)), expected) << range.first << " " << range.second;
  }
}

TEST(Text, RepeatsWithMarks) {
  TextBuilder builder;
  builder.append_repeated(sample(), 2);
  EXPECT_EQ(marked(builder.take()), "ab[cdef]ghab[cdef]gh");
}

TEST(Text, CountsCodePoints) {
  const Text text = make_text("aé日👩", kOurs);
  EXPECT_FALSE(text.ascii);
  EXPECT_EQ(text.size_code_points(), 4u);
  EXPECT_EQ(text.byte_offset_of(2), 3u);
  EXPECT_EQ(text.byte_offset_of(99), text.bytes.size());
}

TEST(TextBuilder, StopsAtItsLimit) {
  TextBuilder builder(4);
  builder.append("abcd", kOurs);
  EXPECT_FALSE(builder.overflowed());
  builder.append("e", kOurs);
  builder.append_repeated("x", 1'000'000'000'000, kOurs);
  EXPECT_TRUE(builder.overflowed());
  EXPECT_EQ(builder.size(), 4u);
}

}  // namespace
}  // namespace quire::jinja
