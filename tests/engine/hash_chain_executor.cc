#include "engine/hash_chain_executor.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/philox.h"
#include "sample/sampler.h"
#include "text/test_specs.h"

namespace quire {

std::unique_ptr<Tokenizer> letter_tokenizer() {
  TokenizerSpec spec;
  spec.byte_level = true;
  for (const char letter : kLetters) testing_specs::add_token(std::string(1, letter), &spec);
  spec.end_of_generation_ids = {kEndToken};
  auto tokenizer = Tokenizer::create(std::move(spec));
  QUIRE_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

std::vector<float> hash_logits(uint64_t state) {
  std::vector<float> logits;
  for (uint64_t token = 0; token < kVocabulary; ++token)
    logits.push_back(static_cast<float>(mix({state, token}) % 1000) / 250.0f);
  logits[kEndToken] -= 1.5f;  // so that outputs have some length
  return logits;
}

std::vector<int32_t> choice_alone(std::span<const KvGroupConfig> groups, const Request& request, int32_t choice,
                                  int64_t max_tokens) {
  SamplingParams params = request.sampling;
  params.seed = branch_seed(params.seed, static_cast<uint64_t>(choice));
  if (params.min_tokens > 0) {
    params.min_tokens_mask = request.stop_token_ids;
    if (!request.ignore_eos) params.min_tokens_mask.push_back(kEndToken);
  }
  Sampler sampler(params, request.prompt);
  std::vector<int32_t> tokens = request.prompt;
  std::vector<int32_t> output;
  while (static_cast<int64_t>(output.size()) < max_tokens) {
    const uint64_t state = reference_states(groups, tokens, request.cache_salt).back();
    const auto token = sampler.sample(hash_logits(state), output.size());
    QUIRE_CHECK(token.ok());
    sampler.accept(*token);
    output.push_back(*token);
    tokens.push_back(*token);
    if (*token == kEndToken && !request.ignore_eos) break;
    if (std::ranges::find(request.stop_token_ids, *token) != request.stop_token_ids.end()) break;
  }
  return output;
}

Result<StepResult> HashChainExecutor::run(const StepPlan& plan, const StepSampling& sampling) {
  if (during_run && !during_run(plan)) {
    model_.fail(plan);
    return io_error("the forward pass was made to fail");
  }
  const std::vector<uint64_t> states = model_.forward(plan, salt_of);
  states_.clear();
  size_t next = 0;
  int32_t end = 0;
  for (const PlanRow& row : plan.rows) {
    end += row.rows;
    for (int32_t i = end - row.logit_rows; i < end; ++i) states_[i] = states[next++];
  }
  return sampler_.sample(plan, sampling, *this);
}

Result<std::span<const float>> HashChainExecutor::logits(std::span<const int32_t> rows) {
  logits_.clear();
  for (const int32_t row : rows) {
    const std::vector<float> one = hash_logits(states_.at(row));
    logits_.insert(logits_.end(), one.begin(), one.end());
  }
  return std::span<const float>(logits_);
}

float HashChainExecutor::log_sum_exp(std::span<const float> logits) {
  double sum = 0;
  for (const float value : logits) sum += std::exp(static_cast<double>(value));
  return static_cast<float>(std::log(sum));
}

}  // namespace quire
