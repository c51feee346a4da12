#include "model/kv_store.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace quire {

namespace {

// Records begin an odd number of cache lines apart, modulo any size of cache: with a power of two in their stride, all
// pages of one layer and head would compete for the same few sets.
constexpr int64_t kRecordPadding = 17 * 64;

}  // namespace

int64_t KvStore::page_bytes(const ModelConfig& config, const KvGroup& group, const DeviceSizes& sizes) {
  return group.layers * config.heads.kv_heads * sizes.kv_head_bytes(config.heads.head_dim) + kRecordPadding;
}

Result<KvStore> KvStore::create(const ModelConfig& config, Device& device, const std::vector<int64_t>& pages,
                                bool touch) {
  KvStore store;
  store.device_ = &device;
  store.shape_ = config.heads;
  store.head_bytes_ = device.sizes().kv_head_bytes(config.heads.head_dim);
  for (size_t g = 0; g < config.kv_groups.size(); ++g) {
    Group group;
    group.pages = pages[g];
    group.layers = config.kv_groups[g].layers;
    group.record_bytes = page_bytes(config, config.kv_groups[g], device.sizes());
    QUIRE_ASSIGN_OR_RETURN(group.memory, Buffer::allocate(group.pages * group.record_bytes, "the KV cache"));
    if (touch) std::memset(group.memory.data(), 0, static_cast<size_t>(group.memory.size()));
    store.groups_.push_back(std::move(group));
  }
  return store;
}

void KvStore::copy_slots(int group, int64_t from, int64_t to, int64_t slots) {
  QUIRE_CHECK(from != to);
  Group& g = groups_[static_cast<size_t>(group)];
  const std::byte* source = g.memory.data() + from * g.record_bytes;
  std::byte* target = g.memory.data() + to * g.record_bytes;
  if (slots == kPageTokens) {
    std::memcpy(target, source, static_cast<size_t>(g.record_bytes));
    return;
  }
  device_->copy_slots(
      {.from = source, .to = target, .heads = g.layers * shape_.kv_heads, .head_dim = shape_.head_dim, .slots = slots});
}

KvLayer KvStore::layer(const LayerConfig& layer) const {
  const Group& group = groups_[static_cast<size_t>(layer.kv_group)];
  return {.base = group.memory.data() + layer.index_in_group * shape_.kv_heads * head_bytes_,
          .page_stride = group.record_bytes,
          .head_stride = head_bytes_};
}

}  // namespace quire
