#include "engine/step_sampler.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/philox.h"
#include "sample/logprobs.h"

namespace quire {
namespace {

TokenLogprob token_logprob(std::span<const float> logits, float normalizer, int32_t id, int32_t top_n) {
  const RowLogprobs row = row_logprobs(logits, normalizer, id, top_n);
  TokenLogprob result{.id = id, .logprob = row.chosen, .rank = row.rank, .top = {}};
  for (const RankedToken& token : row.top) result.top.push_back({token.id, token.logprob});
  return result;
}

// FNV-1a over the bits, a float at a time.
uint64_t hash_of(std::span<const float> logits) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const float value : logits) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3;
  return hash;
}

}  // namespace

struct StepSampler::LogitRow {
  size_t plan_row = 0;
  int32_t row = 0;     // of the step
  int32_t index = 0;   // among the logit rows of its sequence
  int32_t drafts = 0;  // how many of the sequence's drafts it was computed after
  int32_t draft = 0;   // the last of them
  bool samples = false;
};

std::vector<StepSampler::LogitRow> StepSampler::logit_rows(const StepPlan& plan) {
  std::vector<LogitRow> rows;
  int32_t first = 0;
  for (size_t p = 0; p < plan.rows.size(); ++p) {
    const PlanRow& row = plan.rows[p];
    const int32_t first_logits = row.rows - row.logit_rows;
    const int32_t first_sample = row.samples > 0 ? row.rows - 1 - row.draft_rows : row.rows;
    for (int32_t i = first_logits; i < row.rows && !row.padding; ++i) {
      LogitRow wanted{.plan_row = p, .row = first + i, .index = i - first_logits};
      wanted.samples = i >= first_sample;
      wanted.drafts = std::max(0, i - first_sample);
      wanted.draft = plan.tokens[static_cast<size_t>(first + i)];
      rows.push_back(wanted);
    }
    first += row.rows;
  }
  return rows;
}

// Sequences are independent, so they are sampled side by side: over a large vocabulary that takes as long as a small layer.
// Those of its rows that sample are taken in order, by one thread; others, which only score the prompt, stand alone.
Result<StepResult> StepSampler::sample(const StepPlan& plan, const StepSampling& sampling, LogitSource& source) {
  QUIRE_CHECK(sampling.rows.size() == plan.rows.size());
  for (const SequenceId id : sampling.ended) states_.erase(id);
  for (const SamplingStart& start : sampling.started) {
    const auto params = std::make_shared<const SamplingParams>(start.params);
    for (int32_t j = 0; j < start.branches; ++j) {
      const uint64_t seed = branch_seed(params->seed, static_cast<uint64_t>(j));
      states_.insert_or_assign(start.id + j, SequenceState{.sampler = Sampler(params, seed, start.prompt)});
    }
  }
  StepResult result;
  result.rows.resize(plan.rows.size());
  for (size_t p = 0; p < plan.rows.size(); ++p) {
    result.rows[p].prompt_logprobs.resize(sampling.rows[p].prompt_targets.size());
    for (int32_t j = 0; j < plan.rows[p].samples; ++j) {
      const SequenceId id = plan.rows[p].id + j;
      if (!states_.contains(id)) return corrupt("sequence " + std::to_string(id) + " is sampled but was never started");
      result.rows[p].sequences.push_back({.id = id, .tokens = {}, .logprobs = {}, .status = {}});
    }
  }
  const std::vector<LogitRow> rows = logit_rows(plan);
  const auto vocab = static_cast<size_t>(source.vocab_size());
  const auto block = static_cast<size_t>(source.max_logit_rows());
  std::vector<int32_t> step_rows;
  std::vector<size_t> begins;  // of what one thread takes of the block, and the block's end
  std::vector<uint64_t> hashes(sampling.hash_logits ? rows.size() : 0);
  for (size_t at = 0; at < rows.size(); at += block) {
    const auto part = std::span<const LogitRow>(rows).subspan(at, std::min(block, rows.size() - at));
    step_rows.clear();
    begins.clear();
    for (size_t i = 0; i < part.size(); ++i) {
      step_rows.push_back(part[i].row);
      const bool follows = i > 0 && part[i].plan_row == part[i - 1].plan_row && part[i - 1].samples;
      if (!follows) begins.push_back(i);
    }
    begins.push_back(part.size());
    QUIRE_ASSIGN_OR_RETURN(const std::span<const float> logits, source.logits(step_rows));
    source.parallel(static_cast<int64_t>(begins.size()) - 1, [&](int64_t begin, int64_t end) {
      for (size_t i = begins[static_cast<size_t>(begin)]; i < begins[static_cast<size_t>(end)]; ++i) {
        const auto row_logits = logits.subspan(i * vocab, vocab);
        if (sampling.hash_logits) hashes[at + i] = hash_of(row_logits);
        sample_row(part[i], sampling.rows[part[i].plan_row], row_logits, source, result.rows[part[i].plan_row]);
      }
    });
  }
  for (const uint64_t hash : hashes) result.logits_hash = (result.logits_hash ^ hash) * 0x9e3779b97f4a7c15;
  return result;
}

void StepSampler::sample_row(const LogitRow& row, const RowSampling& sampling, std::span<const float> logits,
                             LogitSource& source, RowResult& result) {
  const auto index = static_cast<size_t>(row.index);
  if (index < sampling.prompt_targets.size()) {
    result.prompt_logprobs[index] = token_logprob(logits, source.log_sum_exp(logits), sampling.prompt_targets[index],
                                                  std::max(sampling.logprobs, 0));
  }
  if (!row.samples) return;
  for (SampledSequence& sequence : result.sequences) {
    // Only after all its drafts were sampled too is this row one of the text.
    const bool counts = sequence.tokens.size() == static_cast<size_t>(row.drafts) &&
                        (row.drafts == 0 || sequence.tokens.back() == row.draft);
    if (counts && sequence.status.ok()) draw(sampling, logits, source, sequence);
  }
}

void StepSampler::draw(const RowSampling& sampling, std::span<const float> logits, LogitSource& source,
                       SampledSequence& to) {
  SequenceState& state = states_.at(to.id);
  const Result<int32_t> token = state.sampler.sample(logits, state.sampled);
  if (!token.ok()) {
    to.status = token.status();
    return;
  }
  if (sampling.logprobs >= 0)
    to.logprobs.push_back(token_logprob(logits, source.log_sum_exp(logits), *token, sampling.logprobs));
  state.sampler.accept(*token);
  ++state.sampled;
  to.tokens.push_back(*token);
}

}  // namespace quire
