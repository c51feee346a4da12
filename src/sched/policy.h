// When a waiting sequence may start, and what a step may mix: the only difference between static, dynamic and
// continuous batching. All policies run on the same scheduler, pages, kernels and counters, so results are comparable.
//
// A policy is a pure function of what it is shown; it has no state and no clock.
//
//   static       starts when `batch_size` wait and nothing runs (or the oldest has waited `max_delay_ns`); the next batch
//                starts when all of this one have finished. Finished rows are no longer computed.
//   static-padded  the same, but finished sequences stay in the batch and are computed on until the last one ends.
//   dynamic      as static with several sizes, by the rules of Triton's dynamic batcher: the largest preferred size that
//                can be filled goes at once; else wait until the oldest has waited `max_delay_ns`, then send what there is.
//   continuous   a sequence starts as soon as there is a slot and pages; prompts first, alone in their steps (Orca, 2022).
//   mixed        as continuous, but prompts are cut into chunks that ride along with the decodes (Sarathi-Serve, 2024), as
//                many rows as fit a time limit: `decode_stretch_percent` of what the decodes alone would take, or
//                `least_step_ns` if that is more, with a margin for how far predictions have lately been off. Drafts are
//                charged to the same limit, and before prompts.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cost/step_time_model.h"
#include "sched/sequence.h"

namespace quire {

enum class PolicyKind { kStatic, kStaticPadded, kDynamic, kContinuous, kMixed };

std::string_view policy_name(PolicyKind kind);
Result<PolicyKind> parse_policy(std::string_view name);

struct PolicyConfig {
  PolicyKind kind = PolicyKind::kMixed;
  int64_t batch_size = 8;                     // static: the size; dynamic: the largest
  std::vector<int64_t> preferred_sizes = {};  // dynamic; ascending
  int64_t max_delay_ns = 0;
  int64_t decode_stretch_percent = 220;
  int64_t least_step_ns = 50'000'000;
};

// What a policy sees. Sequences that were preempted start again as soon as they can, whatever the policy says.
struct PolicyView {
  int64_t now_ns = 0;
  int64_t max_step_rows = 0;
  int64_t waiting = 0;            // never started
  int64_t oldest_waiting_ns = 0;  // when the first of them was submitted
  int64_t granted = 0;            // of them, those that an earlier choice let start but that found no rows yet
  int64_t started = 0;            // running, preempted or padding
  StepShape decodes;              // of a step with all current decodes and nothing else
  StepShape drafts;               // what verifying all their drafts would add to it
  int64_t prompt_position = 0;    // where the next prompt row stands
  const StepTimeModel* cost = nullptr;
  std::span<const KvGroupConfig> groups;
};

struct PolicyChoice {
  int64_t start = 0;            // so many of the waiting may start
  bool mix = false;             // prompts and decodes share steps; else a step with prompt rows has nothing else
  int64_t draft_rows = 0;       // at most so many rows of drafts in this step
  int64_t prompt_rows = 0;      // at most so many rows of prompts in this step
  int64_t wake_at_ns = kNever;  // when the choice changes by time alone
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual PolicyChoice choose(const PolicyView& view) const = 0;
  // Starts whole batches, one after the other.
  virtual bool forms_batches() const { return false; }
  // Finished sequences keep their place until the whole batch has finished.
  virtual bool pads() const { return false; }
};

// Fails on sizes that make no sense; names the field.
Result<std::unique_ptr<Policy>> make_policy(const PolicyConfig& config);

}  // namespace quire
