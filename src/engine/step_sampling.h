// What is to be done with the logits of a step, and what came of it: plain data, by sequence. With a StepPlan this is all
// that an executor needs, so a step can be recorded and run again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/event.h"
#include "sample/sampling_params.h"
#include "sched/step_plan.h"

namespace quire {

// A prompt whose first tokens this step samples, one for each branch. Branch j is sequence id + j and draws with the seed
// branch_seed(params.seed, j).
struct SamplingStart {
  SequenceId id = 0;
  int32_t branches = 1;
  SamplingParams params;
  std::vector<int32_t> prompt;
};

// For one row of the plan.
struct RowSampling {
  int32_t logprobs = -1;                // of each sampled token, and so many of the likeliest beside it; -1: none
  std::vector<int32_t> prompt_targets;  // prompt tokens that follow the first logit rows: their log-probabilities too
};

struct StepSampling {
  std::vector<SequenceId> ended;  // since the last step: whoever samples forgets them
  std::vector<SamplingStart> started;
  std::vector<RowSampling> rows;  // one for each row of the plan
  bool hash_logits = false;

  std::string bytes() const;
  // kCorrupt on bytes that are no sampling for `plan`, or whose tokens are outside the vocabulary.
  static Result<StepSampling> parse(std::string_view bytes, const StepPlan& plan, int64_t vocab_size);
};

// The tokens of one sequence, in order: one more than the drafts that were right. Fewer where `status` is not ok.
struct SampledSequence {
  SequenceId id = 0;
  std::vector<int32_t> tokens;
  std::vector<TokenLogprob> logprobs;  // one a token, where asked for
  Status status;                       // the model computed nonsense
};

struct RowResult {
  std::vector<TokenLogprob> prompt_logprobs;
  std::vector<SampledSequence> sequences;  // row.samples of them: the branches in order of their ids
};

struct StepResult {
  std::vector<RowResult> rows;  // one for each row of the plan; nothing in those of padding
  uint64_t logits_hash = 0;     // of all logit rows, where asked for
};

}  // namespace quire
