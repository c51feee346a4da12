// The merges of a byte-pair encoding: which pairs of tokens join, how early, and into what.
//
// Immutable after creation, any thread. Eight bytes a slot (two 20-bit ids, a 24-bit rank), at most 60 % of the slots
// in use, and four bytes a merge: 2.7 MB for 150,000 merges.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "text/hash.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"

namespace quire {

class MergeTable {
 public:
  static constexpr uint32_t kNone = (1u << 24) - 1;

  // Fails on a merge whose parts or result are no tokens, and on more than kNone merges. Of equal pairs the last counts.
  static Result<MergeTable> create(const Vocabulary& vocabulary, const std::vector<Merge>& merges);

  // kNone: the pair does not merge. Lower ranks merge first.
  uint32_t rank(int32_t left, int32_t right) const {
    const uint64_t pair = pair_key(left, right);
    for (size_t i = slot_of(pair);; i = (i + 1) & mask_) {
      const uint64_t slot = slots_[i];
      if (slot >> kRankBits == pair) return static_cast<uint32_t>(slot) & kNone;
      if (slot == kFree) return kNone;
    }
  }

  int32_t result(uint32_t rank) const { return results_[rank]; }

  int64_t memory_bytes() const {
    return static_cast<int64_t>(slots_.capacity() * sizeof slots_[0] + results_.capacity() * sizeof results_[0]);
  }

 private:
  static constexpr int kIdBits = 20;
  static constexpr int kRankBits = 24;
  static constexpr uint64_t kFree = ~uint64_t{0};  // no pair: ids stop short of 2^20 - 1

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << kIdBits | static_cast<uint64_t>(right);
  }
  size_t slot_of(uint64_t pair) const { return static_cast<size_t>(fold_multiply(pair, 0x9E3779B97F4A7C15u)) & mask_; }

  std::vector<uint64_t> slots_;
  size_t mask_ = 0;
  std::vector<int32_t> results_;  // by rank
};

}  // namespace quire
