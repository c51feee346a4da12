// The memory of KV pages. Per KV group a pool of records of fixed size: one record holds 16 tokens of every layer and
// KV head of the group. Who uses which record is the caller's business (page tables in StepInput), and the order of what
// lies in one that of the device, which must outlive the store. Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "model/config.h"

namespace quire {

class KvStore {
 public:
  // Bytes of one page record of a group.
  static int64_t page_bytes(const ModelConfig& config, const KvGroup& group, const DeviceSizes& sizes);

  // Allocates pages[g] records for each group. Touched now, a page fault cannot fall into the middle of a step, and a
  // plan that does not hold shows at once; a large pool that may never fill is better left untouched.
  static Result<KvStore> create(const ModelConfig& config, Device& device, const std::vector<int64_t>& pages,
                                bool touch);

  KvLayer layer(const LayerConfig& layer) const;
  // Copies the first `slots` token slots of a group's record, of all layers and KV heads, into another record, whose other
  // slots keep their bits. At most kPageTokens; `from` and `to` differ. On the caller's thread, not during a step.
  void copy_slots(int group, int64_t from, int64_t to, int64_t slots);
  int64_t pages(int group) const { return groups_[static_cast<size_t>(group)].pages; }
  // For tests, which fill pages with NaN before they are used.
  std::byte* data(int group) { return groups_[static_cast<size_t>(group)].memory.data(); }
  int64_t bytes(int group) const { return groups_[static_cast<size_t>(group)].memory.size(); }

 private:
  struct Group {
    Buffer memory;
    int64_t pages = 0;
    int64_t record_bytes = 0;
    int64_t layers = 0;
  };
  Device* device_ = nullptr;
  std::vector<Group> groups_;
  HeadShape shape_;
  int64_t head_bytes_ = 0;
};

}  // namespace quire
