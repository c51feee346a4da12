// The tokens of a vocabulary: text by id, id by text.
//
// Compact, because vocabularies have 10^5 entries: one blob of bytes, one offset and 1.7 to 3.4 hash slots of four
// bytes each a token. Not thread-safe while tokens are added; immutable use is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

class Vocabulary {
 public:
  // Ids fit 20 bits, which the merge table relies on. The largest published vocabularies have 2^18.
  static constexpr int32_t kMaxSize = (1 << 20) - 1;

  // Whether find() yields a token. Padding and control tokens are known by id only.
  enum class Lookup { kFindable, kHidden };

  // Prepares for `tokens` tokens of `bytes` bytes in all.
  void reserve(size_t tokens, size_t bytes);

  // Gives `text` the id size(). An empty text marks an id without a token. Fails on a findable text that is there
  // already, on more than kMaxSize tokens, and on more than 4 GiB of text.
  Status add(std::string_view text, Lookup lookup = Lookup::kFindable);

  // -1: no such token.
  int32_t find(std::string_view text) const;

  // `id` in [0, size()).
  std::string_view text(int32_t id) const {
    const uint32_t begin = offsets_[static_cast<size_t>(id)];
    return std::string_view(blob_).substr(begin, offsets_[static_cast<size_t>(id) + 1] - begin);
  }

  int32_t size() const { return static_cast<int32_t>(offsets_.size()) - 1; }
  int64_t memory_bytes() const;

 private:
  void insert(int32_t id, uint64_t hash);
  void grow(size_t slots);

  std::string blob_;
  std::vector<uint32_t> offsets_ = {0};
  std::vector<uint32_t> slots_;  // 0: free; else 12 bits of hash, then id + 1. Open addressing, power of two
  size_t used_ = 0;
};

}  // namespace quire
