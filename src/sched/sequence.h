// One generation as the scheduler sees it: token ids, and how many of them have their K and V in the cache.
//
// The one counter `computed` makes every situation the same case. A step gives a sequence rows so that `computed`
// catches up with its tokens: a chunk of a prompt, a decode (one token behind), drafts to verify (a few more), a prompt
// that was partly found in the cache, a preempted sequence that starts over. There is no other phase.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cache/kv_cache.h"

namespace quire {

using SequenceId = int64_t;

inline constexpr int64_t kMaxPriority = 1000;
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();  // a time that does not come

// What is asked for. Immutable once submitted.
struct SequenceSpec {
  std::vector<int32_t> prompt;  // at least one token
  int64_t max_tokens = 0;       // to generate; 0: only compute the prompt
  int64_t branches = 1;         // continuations of the prompt (the API's `n`); branch j has id first + j
  int64_t priority = 0;         // smaller is more urgent; -kMaxPriority .. kMaxPriority
  uint64_t salt = 0;            // tenants with different salts share no pages
  bool prompt_logits = false;   // logits of every prompt row are wanted, so none may come from the cache
};

enum class FinishReason { kStopped, kLength, kCancelled, kFailed };

// What the timeline of a request wants to know.
struct SequenceFacts {
  int64_t submitted_ns = 0;
  int64_t started_ns = kNever;  // first step with rows; kNever: none yet
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the cache when it first started
  MatchExplanation match;     // why no more
  int64_t preemptions = 0;
  int64_t recomputed_tokens = 0;  // computed again after preemptions
};

struct Sequence {
  enum class State { kWaiting, kRunning, kPadding };

  SequenceId id = 0;
  State state = State::kWaiting;
  std::vector<int32_t> tokens;  // prompt and committed output; never shrinks
  std::vector<int32_t> draft;   // unverified continuation
  int64_t prompt_size = 0;
  int64_t max_tokens = 0;
  int64_t branches = 1;  // 1 after the fork
  int64_t rank_ns = 0;   // order of planning, smallest first; victims are taken from the largest
  int64_t computed = 0;  // tokens whose K and V are in the cache
  int64_t scored = 0;    // prompt rows whose logits were delivered, with prompt_logits
  int64_t lost = 0;      // what `computed` was when last preempted
  int64_t rows = 0;      // in the step being planned
  bool prompt_logits = false;
  bool cancelled = false;  // takes effect when the step in flight is committed
  SequencePages pages;
  SequenceFacts facts;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  int64_t pending() const { return size() - computed; }
  int64_t output() const { return size() - prompt_size; }
  bool started() const { return facts.started_ns != kNever; }
};

}  // namespace quire
