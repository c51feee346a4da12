#include "unicode/unicode.h"

#include <cstddef>

namespace quire::internal {
namespace {

constexpr uint32_t kRanges[] = {
#include "unicode/unicode_ranges.inc"
};
constexpr int kFlagBits = 11;
constexpr uint32_t kPageSize = 1 << kUnicodePageBits;

constexpr bool is_space(uint32_t c, Category category) {
  return category == Category::kZs || category == Category::kZl || category == Category::kZp || (c >= 9 && c <= 13) ||
         c == 0x85;
}

constexpr uint16_t derived_bits(uint32_t c, uint32_t flags) {
  const auto category = static_cast<Category>(flags & kCategoryMask);
  uint32_t bits = flags;
  if (category <= Category::kLo) bits |= kLetter;
  if (category >= Category::kNd && category <= Category::kNo) bits |= kNumber;
  if (is_space(c, category)) bits |= kSpace;
  if (c == '\r' || c == '\n') bits |= kNewline;
  return static_cast<uint16_t>(bits);
}

// Pages of one value throughout are shared between blocks, so that the table stays under 90 kB. A page count that
// does not fit kUnicodePages is a compile-time error (an index past the array).
constexpr UnicodeTable build_table() {
  UnicodeTable table{};
  uint16_t used = 0;
  uint32_t shared_value[64] = {};
  uint16_t shared_page[64] = {};
  size_t shared = 0;
  size_t range = 0;
  constexpr size_t kCount = sizeof kRanges / sizeof kRanges[0];
  for (uint32_t block = 0; block < static_cast<uint32_t>(kUnicodeBlocks); ++block) {
    const uint32_t first = block * kPageSize;
    while (range + 1 < kCount && (kRanges[range + 1] >> kFlagBits) <= first) ++range;
    const bool uniform =
        first >= 0x100 && (range + 1 == kCount || (kRanges[range + 1] >> kFlagBits) >= first + kPageSize);
    const uint32_t flags = kRanges[range] & ((1u << kFlagBits) - 1);
    if (uniform) {
      size_t i = 0;
      while (i < shared && shared_value[i] != flags) ++i;
      if (i < shared) {
        table.page_of_block[block] = shared_page[i];
        continue;
      }
      shared_value[shared] = flags;
      shared_page[shared++] = used;
    }
    size_t r = range;
    for (uint32_t k = 0; k < kPageSize; ++k) {
      while (r + 1 < kCount && (kRanges[r + 1] >> kFlagBits) <= first + k) ++r;
      table.pages[used][k] = derived_bits(first + k, kRanges[r] & ((1u << kFlagBits) - 1));
    }
    table.page_of_block[block] = used++;
  }
  return table;
}

}  // namespace

constinit const UnicodeTable kUnicodeTable = build_table();

}  // namespace quire::internal
