// A model without weights that notices every mistake of a cache: the "K and V" of a token are a hash of the token, its
// position, and slots of earlier positions read through the page table. One stale, foreign or missing slot changes
// everything after it. Slots that nobody may read hold garbage.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "sched/step_plan.h"

namespace quire {

inline constexpr int32_t kVocabulary = 7;
inline constexpr int32_t kStopToken = 0;

uint64_t mix(std::initializer_list<uint64_t> values);

// The token that follows, as a function of the last row's state, the request's seed and its position alone.
int32_t next_token(uint64_t state, uint64_t seed, int64_t position);

// The state of each row of `tokens`, computed alone and without pages.
std::vector<uint64_t> reference_states(std::span<const KvGroupConfig> groups, std::span<const int32_t> tokens,
                                       uint64_t salt);

// One branch of a request from prompt to end, computed alone: the definition of the right output.
std::vector<int32_t> reference_output(std::span<const KvGroupConfig> groups, std::vector<int32_t> prompt,
                                      int64_t max_tokens, uint64_t seed, uint64_t salt);

class HashChainModel {
 public:
  explicit HashChainModel(const KvCacheConfig& config);

  // Carries out the copies and all rows; returns the states of the rows that want logits, in order.
  std::vector<uint64_t> forward(const StepPlan& plan, const std::function<uint64_t(SequenceId)>& salt_of);

  // A forward pass that stops half-way: whatever it was to write is garbage.
  void fail(const StepPlan& plan);

  // Puts garbage into all pages that no sequence references and no prefix can find.
  void spoil_unused(const KvCache& cache);

 private:
  std::vector<uint64_t>& slots(size_t group) { return slots_[group]; }
  uint64_t garbage() { return 0x6172626167650000 + garbage_++; }
  void copy_pages(const StepPlan& plan);

  std::vector<KvGroupConfig> groups_;
  int64_t page_tokens_;
  std::vector<std::vector<uint64_t>> slots_;  // [group][page * page_tokens + offset]
  uint64_t garbage_ = 0;
};

}  // namespace quire
