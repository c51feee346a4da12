// An executor without weights whose text reveals every wrong page, slot, draft and sampler: its logits are hashes of a
// chain through the page tables (tests/scheduler/hash_chain_model.h), sampled by the real StepSampler.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/executor.h"
#include "engine/request.h"
#include "engine/step_sampler.h"
#include "scheduler/hash_chain_model.h"
#include "text/tokenizer.h"

namespace quire {

inline constexpr int32_t kEndToken = 0;                  // of kVocabulary tokens
inline constexpr std::string_view kLetters = "eabcdfz";  // token i says letter i

// One letter a token; kEndToken ends an answer.
std::unique_ptr<Tokenizer> letter_tokenizer();

// The logits of a row in a given state.
std::vector<float> hash_logits(uint64_t state);

// What a choice of a request is sampled, computed alone: no pages, no batch, no drafts. Ends with what ends it, or at
// `max_tokens`. Stop strings are not looked at.
std::vector<int32_t> choice_alone(std::span<const KvGroupConfig> groups, const Request& request, int32_t choice,
                                  int64_t max_tokens);

class HashChainExecutor final : public Executor, private LogitSource {
 public:
  explicit HashChainExecutor(const KvCacheConfig& config) : model_(config) {}

  int64_t vocab_size() const override { return kVocabulary; }
  Result<StepResult> run(const StepPlan& plan, const StepSampling& sampling) override;

  // Called in the middle of each run; false makes it fail.
  std::function<bool(const StepPlan& plan)> during_run;
  // Salt of the sequence's request, which the chain starts with.
  std::function<uint64_t(SequenceId)> salt_of;

  HashChainModel& model() { return model_; }
  // Sequences that it still has a sampler for.
  size_t sampled_sequences() const { return sampler_.sequences(); }

 private:
  int64_t max_logit_rows() const override { return 5; }  // small, so that sequences are cut between blocks
  Result<std::span<const float>> logits(std::span<const int32_t> rows) override;
  float log_sum_exp(std::span<const float> logits) override;
  void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) override { body(0, count); }

  HashChainModel model_;
  StepSampler sampler_;
  std::map<int32_t, uint64_t> states_;  // of the last run's logit rows, by row of the step
  std::vector<float> logits_;
};

}  // namespace quire
