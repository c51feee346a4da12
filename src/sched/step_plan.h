// What one step computes, as plain numbers: which rows, of which sequences, in which pages. engine/ turns it into a
// StepInput; nothing in it needs the scheduler any more, so it can be sent to other ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_cache.h"
#include "cost/step_time_model.h"
#include "sched/sequence.h"

namespace quire {

// In place of a token that the step before has not sampled yet. The scheduler does not plan ahead, so it makes none.
inline constexpr int32_t kTokenToFollow = -1;

// The attention part of a StepShape: `rows` rows from position `first` on, in every layer of every group.
int64_t attention_over_layers(std::span<const KvGroupConfig> groups, int64_t first, int64_t rows);

// Consecutive rows of one sequence.
struct PlanRow {
  SequenceId id = 0;
  int64_t first_position = 0;
  int32_t rows = 0;
  int32_t draft_rows = 0;  // of `rows`, the last ones carry unverified tokens
  int32_t logit_rows = 0;  // of `rows`, the last ones want logits
  int32_t samples = 0;     // results commit() expects: 0 amid a prompt, the branches at its end, else 1
  bool padding = false;    // a finished sequence that a padded static batch computes on; its output is nobody's
};

struct StepPlan {
  struct Admission {
    SequenceId id = 0;
    int64_t cached_tokens = 0;
    MatchExplanation match;
    bool resumed = false;  // after a preemption, or a branch that waited for a slot
  };
  struct Preemption {
    SequenceId id = 0;
    int64_t lost_tokens = 0;
  };

  std::vector<PlanRow> rows;
  std::vector<int32_t> tokens;             // of all rows, in order
  std::vector<const PageId*> page_tables;  // [rows.size()][groups]; valid until the plan is committed or failed
  std::vector<PageCopy> copies;            // to do in order before the forward pass
  std::vector<Admission> admitted;
  std::vector<Preemption> preempted;
  StepShape shape;
  int64_t wake_at_ns = kNever;  // of an empty plan: when planning again may find work without new events

  bool empty() const { return rows.empty(); }
  void clear();
};

}  // namespace quire
