// A hash table from Hash128 to page that is sized once and never allocates again: open addressing, linear probing,
// deletion by moving later entries up. At most half full, so a look-up is one or two cache lines.
// Thread: one at a time.
#pragma once

#include <bit>
#include <vector>

#include "base/check.h"
#include "cache/page_pool.h"
#include "cache/siphash.h"

namespace quire {

class HashTable {
 public:
  explicit HashTable(int64_t capacity)
      : slots_(std::bit_ceil(static_cast<size_t>(capacity) * 2 + 2)), capacity_(capacity) {}

  int64_t size() const { return size_; }

  PageId find(const Hash128& hash) const {
    const Slot& slot = slots_[locate(hash)];
    return slot.page;
  }

  // False, and nothing changes, when the hash is there already.
  bool insert(const Hash128& hash, PageId page) {
    Slot& slot = slots_[locate(hash)];
    if (slot.page != kNoPage) return false;
    QUIRE_CHECK(size_ < capacity_);
    slot = {hash, page};
    ++size_;
    return true;
  }

  // The hash must be there.
  void replace(const Hash128& hash, PageId page) {
    Slot& slot = slots_[locate(hash)];
    QUIRE_CHECK(slot.page != kNoPage);
    slot.page = page;
  }

  void erase(const Hash128& hash) {
    size_t hole = locate(hash);
    QUIRE_CHECK(slots_[hole].page != kNoPage);
    for (size_t next = after(hole); slots_[next].page != kNoPage; next = after(next)) {
      // An entry may move up only to where its own probing passes.
      if (distance(home(slots_[next].hash), next) < distance(hole, next)) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole].page = kNoPage;
    --size_;
  }

 private:
  struct Slot {
    Hash128 hash;
    PageId page = kNoPage;
  };

  size_t home(const Hash128& hash) const { return static_cast<size_t>(hash.low) & (slots_.size() - 1); }
  size_t after(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  size_t distance(size_t from, size_t to) const { return (to - from) & (slots_.size() - 1); }

  // Where the hash is, or else the free slot where it belongs.
  size_t locate(const Hash128& hash) const {
    size_t slot = home(hash);
    while (slots_[slot].page != kNoPage && slots_[slot].hash != hash) slot = after(slot);
    return slot;
  }

  std::vector<Slot> slots_;
  int64_t capacity_;
  int64_t size_ = 0;
};

}  // namespace quire
