// Whether one more sequence will fit to its end: the gate in front of the page pools.
//
// Peak projection (after the admission queue of Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024):
// running sequences grow by a token a step and give their pages back when they end, so with known output lengths the
// largest future demand is at one of the ends. Lengths are not known; each is taken from a running quantile of lengths
// seen, given what the sequence has already produced. When that is too low, preemption repairs it.
// Thread: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cache/kv_cache.h"
#include "sched/sequence.h"

namespace quire {

// The last output lengths, and what they say of one that is still growing.
class LengthHistory {
 public:
  void add(int64_t output_tokens);

  // How many more tokens a sequence with `output` so far is expected to produce, 1 .. `most` (0 if most is 0).
  int64_t expect(int64_t output, int64_t most) const;

 private:
  static constexpr size_t kCapacity = 512;
  std::vector<int64_t> sorted_;
  std::array<int64_t, kCapacity> ring_{};
  size_t next_ = 0;
};

// Built from all sequences that have pages; then asked about one more.
class PeakProjection {
 public:
  explicit PeakProjection(const KvCache& cache);

  void add(const Sequence& sequence, int64_t expected_output);

  // `candidate` with `match` found, expected to grow by `expected_output`: does every group last to the peak?
  bool fits(const Sequence& candidate, const PrefixMatch& match, int64_t expected_output) const;

 private:
  struct Growth {
    int64_t remaining = 0;  // tokens until it ends
    int64_t size = 0;       // tokens now
    int64_t branches = 1;   // that will each grow
    int64_t shared = 0;     // pages of a global group that its end does not give back
    const SequencePages* pages = nullptr;
  };
  struct GroupDemand {
    int64_t now = 0;      // global: pages used, and those that the tokens there are still need
    int64_t at_most = 0;  // window: pages that all can hold at once
  };

  void add_demand(const Growth& growth, int64_t group, int64_t held, std::vector<GroupDemand>& demand) const;
  int64_t whole_growth(const Growth& growth) const;
  int64_t peak_growth(std::vector<Growth>& growing) const;

  const KvCache& cache_;
  int64_t global_group_ = -1;  // one of them: all hold the same tokens; -1: there is none
  std::vector<Growth> growing_;
  int64_t whole_growth_ = 0;  // pages of a global group, if none were ever given back
  std::vector<GroupDemand> demand_;
};

}  // namespace quire
