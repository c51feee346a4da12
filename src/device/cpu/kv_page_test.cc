// Copies of token slots between pages: every type of KV, odd head sizes, every number of slots, and every instruction set
// that writes and reads pages.

#include "device/cpu/kv_page.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/cpu/kernels.h"

namespace quire::cpu {
namespace {

constexpr int32_t kTokens = quire::kPageTokens;
constexpr KvType kTypes[] = {KvType::kBF16, KvType::kF16, KvType::kI8, KvType::kF32};
constexpr int32_t kHeadDims[] = {1, 7, 16, 40, 64, 72, 80, 96, 128, 256};

const KvKernels& kernels_of(const Kernels& table, KvType type) {
  switch (type) {
    case KvType::kBF16:
      return table.kv_bf16;
    case KvType::kF16:
      return table.kv_f16;
    case KvType::kI8:
      return table.kv_i8;
    case KvType::kF32:
      break;
  }
  return table.kv_f32;
}

std::vector<const Kernels*> tables() {
  std::vector<const Kernels*> found;
  for (const Kernels* table : {&scalar_kernels(), avx2_kernels(), avxvnni_kernels(), avx512_kernels()}) {
    if (table != nullptr) found.push_back(table);
  }
  return found;
}

// Pages lie on whole cache lines.
struct alignas(64) Line {
  std::array<std::byte, 64> bytes;
  bool operator==(const Line&) const = default;
};

// K and V of a page's tokens, and a page to store them in, full of garbage.
struct Page {
  Page(const KvKernels& of_type, KvType type, int32_t head_dim, std::mt19937_64& random)
      : kernels(of_type), dim(head_dim), lines(static_cast<size_t>(kv_page_bytes(type, head_dim)) / sizeof(Line)) {
    std::memset(lines.data(), 0xA5, lines.size() * sizeof(Line));
    std::normal_distribution<float> normal;
    for (auto* values : {&k, &v}) {
      values->resize(static_cast<size_t>(kTokens * dim));
      for (float& value : *values) value = normal(random);
    }
  }

  void store(const Page& rows, int32_t first, int32_t last) {
    for (int32_t slot = first; slot < last; ++slot) {
      kernels.store(rows.k.data() + slot * dim, rows.v.data() + slot * dim, dim, static_cast<int32_t>(padded_dim(dim)),
                    slot, reinterpret_cast<uint8_t*>(data()));
    }
  }

  // What attention reads of one token: the product of K with `q`, then V.
  std::vector<float> read(int32_t slot, const std::vector<float>& q) const {
    const int64_t padded = padded_dim(dim);
    const int32_t table = 0;
    AttentionRows rows{};
    rows.rows = 1;
    rows.q[0] = q.data();
    rows.position[0] = slot;
    rows.head_dim = dim;
    rows.head_dim_padded = static_cast<int32_t>(padded);
    rows.window = 1;
    rows.scale = 1;
    rows.kv_base = reinterpret_cast<const uint8_t*>(lines.data());
    rows.page_stride = static_cast<int64_t>(lines.size() * sizeof(Line));
    rows.page_table = &table;
    rows.kv_tokens = slot + 1;
    std::vector<float> seen(static_cast<size_t>(2 + padded));
    kernels.attend(rows, 0, slot + 1, {seen.data(), seen.data() + 1, seen.data() + 2});
    return seen;
  }

  std::byte* data() { return lines.data()->bytes.data(); }

  const KvKernels& kernels;
  int32_t dim;
  std::vector<Line> lines;
  std::vector<float> k, v;
};

TEST(KvPage, CopiesTheFirstSlotsAndLeavesTheOthers) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const Kernels* table : tables()) {
    for (const KvType type : kTypes) {
      for (const int32_t dim : kHeadDims) {
        SCOPED_TRACE(std::string(table->name) + ", type " + std::to_string(static_cast<int>(type)) + ", head size " +
                     std::to_string(dim));
        const KvKernels& kernels = kernels_of(*table, type);
        Page from(kernels, type, dim, random);
        Page old(kernels, type, dim, random);
        from.store(from, 0, kTokens);
        old.store(old, 0, kTokens);
        for (int32_t slots = 0; slots <= kTokens; ++slots) {
          Page to = old;
          copy_kv_slots(type, dim, slots, from.data(), to.data());
          // What both pages' rows would be, had they been written there.
          Page want = old;
          want.store(from, 0, slots);
          ASSERT_TRUE(to.lines == want.lines) << slots << " slots";
          for (int32_t slot = 0; slot < kTokens; ++slot)
            ASSERT_EQ(to.read(slot, from.k), (slot < slots ? from : old).read(slot, from.k))
                << slots << " slots: " << slot;
        }
      }
    }
  }
}

// Slots that nobody wrote may hold anything, and still do after the copy.
TEST(KvPage, LeavesSlotsThatWereNeverWritten) {
  std::mt19937_64 random(3);
  for (const KvType type : kTypes) {
    const KvKernels& kernels = kernels_of(scalar_kernels(), type);
    Page from(kernels, type, 72, random);
    Page to(kernels, type, 72, random);
    Page want(kernels, type, 72, random);
    from.store(from, 0, kTokens);
    want.store(from, 0, 5);
    copy_kv_slots(type, 72, 5, from.data(), to.data());
    EXPECT_TRUE(to.lines == want.lines) << "type " << static_cast<int>(type);
  }
}

}  // namespace
}  // namespace quire::cpu
