#include "model/kv_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>

namespace quire {
namespace {

// Two groups: three layers, and one.
ModelConfig small_config() {
  ModelConfig config;
  config.heads = {.heads = 4, .kv_heads = 2, .head_dim = 40};
  config.kv_groups.resize(2);
  config.kv_groups[0].layers = 3;
  config.kv_groups[1].layers = 1;
  return config;
}

int64_t count(std::span<const std::byte> bytes, int value) {
  return std::count(bytes.begin(), bytes.end(), static_cast<std::byte>(value));
}

// Every slot takes as many bytes as any other, so the bytes that change show how many slots were copied; which ones they
// are is kv_page_test.cc's.
TEST(KvStore, CopiesSlotsOfOneGroupAndRecord) {
  const ModelConfig config = small_config();
  for (const KvType type : {KvType::kBF16, KvType::kF16, KvType::kI8, KvType::kF32}) {
    auto device = make_cpu_device({.kv = type});
    ASSERT_TRUE(device.ok());
    for (int64_t slots = 0; slots <= kPageTokens; ++slots) {
      auto store = KvStore::create(config, **device, {4, 4}, true);
      ASSERT_TRUE(store.ok());
      const int64_t record = KvStore::page_bytes(config, config.kv_groups[0], (*device)->sizes());
      const auto page = [&](int64_t index) {
        return std::span(store->data(0) + index * record, static_cast<size_t>(record));
      };
      std::ranges::fill(page(1), std::byte{1});
      std::ranges::fill(page(3), std::byte{3});
      store->copy_slots(0, 1, 3, slots);
      const int64_t slot_bytes = config.kv_groups[0].layers * config.heads.kv_heads *
                                 (*device)->sizes().kv_head_bytes(config.heads.head_dim) / kPageTokens;
      const int64_t copied = slots == kPageTokens ? record : slots * slot_bytes;  // a whole record with its padding
      EXPECT_EQ(count(page(3), 1), copied) << slots << " slots";
      EXPECT_EQ(count(page(3), 3), record - copied) << slots << " slots";
      EXPECT_EQ(count(page(1), 1), record);
      EXPECT_EQ(count(page(0), 0) + count(page(2), 0), 2 * record);
      EXPECT_EQ(count(std::span(store->data(1), static_cast<size_t>(store->bytes(1))), 0), store->bytes(1));
    }
  }
}

}  // namespace
}  // namespace quire
