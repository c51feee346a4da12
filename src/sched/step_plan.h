// What one step computes, as plain numbers: which rows, of which sequences, in which pages. A value without pointers: it
// can be kept, written to a file or sent, and run later or elsewhere with the same bits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "cost/step_time_model.h"
#include "sched/sequence.h"

namespace quire {

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
  bool padding = false;    // a finished sequence that a padded static batch computes on; nobody receives its output

  bool operator==(const PlanRow&) const = default;
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

  int32_t groups = 0;  // KV groups
  std::vector<PlanRow> rows;
  std::vector<int32_t> tokens;  // of all rows, in order
  // The page tables of rows[i] in group g are pages[page_offsets[i * groups + g]] up to the next offset: the page of tokens
  // [16 j, 16 j + 16) for every j up to the row's last position, kNoPage where none is needed any more.
  std::vector<PageId> pages;
  std::vector<int64_t> page_offsets;  // [rows.size() * groups + 1]
  std::vector<PageMove> moves;        // to do in order before the forward pass

  // What follows is for the engine that made the plan: whoever runs it needs none of it, and bytes() leaves it out.
  std::vector<Admission> admitted;
  std::vector<Preemption> preempted;
  StepShape shape;
  int64_t wake_at_ns = kNever;  // of an empty plan: when planning again may find work without new events

  bool empty() const { return rows.empty(); }
  std::span<const PageId> page_table(size_t row, size_t group) const {
    const size_t at = row * static_cast<size_t>(groups) + group;
    return std::span<const PageId>(pages).subspan(static_cast<size_t>(page_offsets[at]),
                                                  static_cast<size_t>(page_offsets[at + 1] - page_offsets[at]));
  }
  void clear();

  std::string bytes() const;
  // Fails with kCorrupt on bytes whose counts, offsets or lists contradict each other. That tokens and pages exist in the
  // model at hand is for check_plan() to say.
  static Result<StepPlan> parse(std::string_view bytes);
};

// What a model and its pools hold, as far as a plan depends on it.
struct PlanBounds {
  int64_t vocab_size = 0;
  int64_t max_rows = 0;
  int64_t context = 0;  // positions
  int64_t page_tokens = 0;
  struct Group {
    int64_t pages = 0;   // of its pool
    int64_t window = 0;  // 0: none
  };
  std::vector<Group> groups;
};

// Whether a plan that somebody else made can be run: every token, page and position within bounds. kCorrupt says which not.
Status check_plan(const StepPlan& plan, const PlanBounds& bounds);

}  // namespace quire
