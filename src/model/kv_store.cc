#include "model/kv_store.h"

#include <cstring>
#include <utility>

namespace quire {

namespace {

// Records begin an odd number of cache lines apart, modulo any size of cache: with a power of two in their stride, all
// pages of one layer and head would compete for the same few sets.
constexpr int64_t kRecordPadding = 17 * 64;

}  // namespace

int64_t KvStore::page_bytes(const ModelConfig& config, const KvGroup& group, const Device& device) {
  return group.layers * config.heads.kv_heads * device.kv_head_bytes(config.heads.head_dim) + kRecordPadding;
}

Result<KvStore> KvStore::create(const ModelConfig& config, const Device& device, const std::vector<int64_t>& pages,
                                bool touch) {
  KvStore store;
  store.kv_heads_ = config.heads.kv_heads;
  store.head_bytes_ = device.kv_head_bytes(config.heads.head_dim);
  for (size_t g = 0; g < config.kv_groups.size(); ++g) {
    Group group;
    group.pages = pages[g];
    group.record_bytes = page_bytes(config, config.kv_groups[g], device);
    QUIRE_ASSIGN_OR_RETURN(group.memory, Buffer::allocate(group.pages * group.record_bytes, "the KV cache"));
    if (touch) std::memset(group.memory.data(), 0, static_cast<size_t>(group.memory.size()));
    store.groups_.push_back(std::move(group));
  }
  return store;
}

void KvStore::copy_page(int group, int64_t from, int64_t to) {
  const Group& g = groups_[static_cast<size_t>(group)];
  std::memcpy(g.memory.data() + to * g.record_bytes, g.memory.data() + from * g.record_bytes,
              static_cast<size_t>(g.record_bytes));
}

KvLayer KvStore::layer(const LayerConfig& layer) const {
  const Group& group = groups_[static_cast<size_t>(layer.kv_group)];
  return {.base = group.memory.data() + layer.index_in_group * kv_heads_ * head_bytes_,
          .page_stride = group.record_bytes,
          .head_stride = head_bytes_};
}

}  // namespace quire
