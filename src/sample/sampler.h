// Chooses the next token of one sequence from its row of logits.
//
// Order: bad words, min_tokens, logit bias, repetition, frequency and presence penalty, temperature, min-p, top-k,
// top-p, draw (that of vLLM's sampler). Greedy, a temperature
// below 1e-5, takes the highest penalised logit; ties go to the lowest id. Otherwise the draw is by inverse
// cumulative distribution over (logit descending, id ascending) with Philox bits of (seed, output index): the
// result is a function of the logits row, the parameters, the tokens so far and the output index alone.
//
// One Sampler a sequence; not thread-safe. Cost on a vocabulary of V: greedy is two light passes over V; top-k adds a
// partial selection; else one exponential per token. Nothing sorts the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "sample/sampling_params.h"

namespace quire {

class Sampler {
 public:
  // `params` are valid (SamplingParams::validate), their ids below the vocabulary's size. The repetition penalty covers
  // `prompt` and what is accepted, the others what is accepted.
  Sampler(const SamplingParams& params, std::span<const int32_t> prompt);
  // One of several that share `params` but for the seed.
  Sampler(std::shared_ptr<const SamplingParams> params, uint64_t seed, std::span<const int32_t> prompt);

  // Tells the sampler that `id` is now part of the output.
  void accept(int32_t id);

  // `logits`: one per token of the vocabulary, at most 2^20; every id seen so far is below its size. NaN and -inf are
  // never chosen. Fails when no logit is finite, or one is +inf: the model computed nonsense.
  Result<int32_t> sample(std::span<const float> logits, uint64_t output_index);

 private:
  struct Candidate {
    float logit;
    int32_t id;
    uint64_t weight;  // softmax_weight
  };

  void mark_seen(int32_t id);
  bool adjusts(uint64_t output_index) const;
  std::span<const float> adjust(std::span<const float> logits, uint64_t output_index);
  void mask_bad_words();
  void penalize_output();
  int32_t draw(std::span<const float> logits, float max_logit, uint64_t bits);
  void select_top_k(std::span<const float> logits, float max_logit, float floor);
  void gather(std::span<const float> logits, float max_logit, float floor, uint64_t enough);
  uint64_t weight_of(float logit, float max_logit) const;

  std::shared_ptr<const SamplingParams> params_;
  uint64_t seed_;
  std::vector<bool> seen_;  // by id, in prompt or output
  std::vector<int32_t> seen_ids_;
  std::vector<int32_t> output_;   // kept only where bad words or output penalties need it
  std::vector<uint32_t> counts_;  // by id, in the output
  std::vector<int32_t> counted_ids_;
  std::vector<float> adjusted_;  // scratch, as is candidates_
  std::vector<Candidate> candidates_;
};

}  // namespace quire
