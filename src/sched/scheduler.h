// The control column's one entry: decides step by step which sequences compute which rows in which pages.
//
//   submit() ... then for ever:  plan(now) -> forward pass and sampling -> commit(...) or fail_step()
//
// The loop of one step:
//   1. The policy says how many waiting sequences may start and how many rows prompts may take.
//   2. Rows are dealt to running sequences as numbers: one to each decode, then drafts, as many as the policy lets, then
//      prompts, each at most half of what is left while others still want some.
//   3. Pages are reserved in order of rank. A sequence that finds none for even one row takes them from the sequence of
//      the largest rank, which gives up its pages and later starts over (preemption by recomputation). Planning order is
//      the inverse of the order of victims, so a victim is never in the plan.
//   4. If nothing was preempted, sequences start: those preempted before, then waiting ones, each with the prefix that is
//      found in the cache right now and only if the peak projection says that it will fit to its end.
//   5. commit() appends the tokens, sets computed = size - 1 (which is also the rollback of rejected drafts), publishes
//      full pages, forks branches at the end of a prompt, and releases what finished.
//
// Rank is priority * aging + submission time: one priority level is worth that much waiting, so none waits for ever.
//
// What holds between calls: a waiting sequence has no pages and computed = 0; a running one has pages for all it has
// computed, and something left to compute; tokens only grow; with work pending a plan is not empty unless the policy waits
// for a batch (then wake_at_ns says until when).
//
// Thread: one at a time; every time is an argument; no clock, no randomness. Integers only.
// Errors: submit() says when the queue is full. Calling things out of order, or with what does not fit, is a bug and
// checked.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "cost/step_time_model.h"
#include "sched/admission.h"
#include "sched/policy.h"
#include "sched/queue_limits.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace quire {

struct SchedulerConfig {
  PolicyConfig policy = {};
  int64_t max_seqs = 32;        // running at once
  int64_t max_step_rows = 512;  // at least max_seqs
  QueueLimits queue = {};
  int64_t aging_ns = 10'000'000'000;  // waiting that is worth one priority level
  bool project_peak = true;           // else a sequence starts as soon as there are pages for its first rows
};

// What was sampled for one sequence: the tokens in order, one more than the drafts that were accepted.
struct SampleResult {
  SequenceId id = 0;
  std::span<const int32_t> tokens;
  bool stopped = false;  // the last token ends it: a stop token, a stop string, or the caller's wish
};

struct StepOutcome {
  struct Finished {
    SequenceId id = 0;
    FinishReason reason = FinishReason::kStopped;
    SequenceFacts facts;
  };
  std::vector<Finished> finished;  // each sequence at most once in its life
  std::vector<SequenceId> forked;  // branches that came to life in this step
};

struct SchedulerCounters {
  int64_t steps = 0;
  int64_t prefix_query_tokens = 0;  // of sequences starting for the first time
  int64_t prefix_hit_tokens = 0;
  int64_t resumed_hit_tokens = 0;  // of sequences starting over
  int64_t preemptions = 0;
  int64_t recomputed_tokens = 0;
  int64_t copied_pages = 0;
  int64_t wasted_rows = 0;  // padding
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;
};

struct SchedulerGauges {
  int64_t running = 0;
  int64_t waiting = 0;    // never started
  int64_t preempted = 0;  // waiting to start over, or branches waiting for a slot
  int64_t padding = 0;
  int64_t queued_tokens = 0;  // prompt tokens of the waiting

  QueueUse queue() const { return {.requests = waiting, .tokens = queued_tokens}; }
};

enum class CancelResult {
  kUnknown,   // finished before, or never known
  kDone,      // gone, its pages are free; it appears in no outcome
  kAtCommit,  // part of the step in flight: commit() or fail_step() will report it
};

class Scheduler {
 public:
  static Result<std::unique_ptr<Scheduler>> create(const SchedulerConfig& config, KvCacheConfig cache_config);

  // What prefixes are found by beside their tokens; replaces the cache configuration's. Before the first submit().
  void set_fingerprint(std::string fingerprint) { cache_.set_fingerprint(std::move(fingerprint)); }

  // Whether it could run if it were alone. What says so to people is RequestLimits (engine/request_limits.h).
  bool fits(const SequenceSpec& spec) const;

  // The id of the first branch; branch j has this + j. `spec` fits. Fails with kResourceExhausted: the queue is full, try
  // later.
  Result<SequenceId> submit(SequenceSpec spec, int64_t now_ns);

  // Before the fork the first id stands for all branches.
  CancelResult cancel(SequenceId id);

  // Valid until the next call; commit() or fail_step() must follow unless it is empty.
  const StepPlan& plan(int64_t now_ns);

  // `results`: row.samples of them for each row of the plan, in order; the branches of a row in order of their ids.
  // Results of cancelled sequences are ignored. `step_ns` is what the step took; 0 leaves the time model alone.
  const StepOutcome& commit(std::span<const SampleResult> results, int64_t step_ns);

  // The forward pass failed: the sequences of the plan end with kFailed, all others are untouched.
  const StepOutcome& fail_step();

  // Tokens that probably follow, to be verified in the next step. Cut to what max_tokens leaves room for.
  void set_draft(SequenceId id, std::span<const int32_t> draft);

  // Null when the sequence has finished.
  const Sequence* find(SequenceId id) const;

  const SchedulerConfig& config() const { return config_; }
  const SchedulerCounters& counters() const { return counters_; }
  SchedulerGauges gauges() const;
  KvUsage kv_usage(int64_t group) const { return cache_.usage(group); }
  const StepTimeModel& step_times() const { return step_times_; }
  const KvCache& cache() const { return cache_; }

  // For tests: the first broken invariant.
  Status check_invariants() const;

 private:
  using Queue = std::set<std::pair<int64_t, SequenceId>>;  // (rank, id)

  Scheduler(const SchedulerConfig& config, std::unique_ptr<Policy> policy, KvCache cache);

  Sequence& sequence(SequenceId id) { return *sequences_.at(id); }

  // plan.cc
  PolicyView view(int64_t now_ns);
  int64_t free_slots() const;
  struct Deal {  // who takes part in a step, and how many rows the policy gives to whom
    bool decodes = false;
    bool prompts = false;
    int64_t candidates = 0;  // sequences that may start
    int64_t draft_rows = 0;
    int64_t prompt_rows = 0;
  };
  void deal_rows(const Deal& deal);
  void set_rows(Sequence& dealt, int64_t rows);
  bool reserve_running();
  bool reserve(Sequence& planned);
  void preempt(Sequence& victim);
  bool start_sequences(int64_t waiting_allowed, int64_t now_ns);
  bool start(Sequence& candidate, int64_t rows_allowed, int64_t now_ns);
  bool will_fit(const Sequence& candidate, const PrefixMatch& match) const;
  void record_start(Sequence& started, const PrefixMatch& match, const MatchExplanation& explanation, int64_t now_ns);
  void deal_leftover();
  void pad();
  void write_plan();
  void write_row(Sequence& planned);
  void write_page_tables();

  // commit.cc
  void commit_row(const PlanRow& row, Sequence& committed, std::span<const SampleResult> results);
  void fork_branches(const Sequence& parent, std::span<const SampleResult> results);
  void take_result(Sequence& sequence, const SampleResult& result, int64_t computed_from);
  void finish(Sequence& finished, FinishReason reason);
  void end_step();
  void insert_running(Sequence& started);
  void give_up_pages(Sequence& sequence);
  void drop_padding();

  SchedulerConfig config_;
  std::unique_ptr<Policy> policy_;
  KvCache cache_;
  StepTimeModel step_times_;
  LengthHistory lengths_;

  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;                          // by rank
  Queue waiting_;                                           // never started
  Queue preempted_;                                         // started before
  std::vector<Sequence*> padding_;                          // finished, still in a padded batch
  std::deque<std::pair<int64_t, SequenceId>> submissions_;  // (time, id); those that started are skipped lazily
  int64_t granted_ = 0;                                     // waiting ones that may start whatever the policy says
  int64_t queued_tokens_ = 0;
  SequenceId next_id_ = 1;

  StepPlan plan_;
  std::vector<Sequence*> planned_;  // of each row of the plan; they live until it is committed
  StepOutcome outcome_;
  bool in_flight_ = false;
  int64_t rows_left_ = 0;         // while planning: of the step, and
  int64_t prompt_rows_left_ = 0;  // of what the policy allows prompts
  SchedulerCounters counters_;
};

}  // namespace quire
