#include "engine/step_sampling.h"

#include <algorithm>

#include "base/byte_stream.h"

namespace quire {
namespace {

constexpr int32_t kMostBranches = 1 << 16;

Status damaged(const std::string& what) { return corrupt("the step's sampling is damaged: " + what); }

void put_params(ByteWriter& out, const SamplingParams& params) {
  for (const float value : {params.temperature, params.top_p, params.min_p, params.repetition_penalty,
                            params.frequency_penalty, params.presence_penalty}) {
    out.put(value);
  }
  out.put(params.top_k);
  out.put(static_cast<uint64_t>(params.logit_bias.size()));
  for (const SamplingParams::Bias& entry : params.logit_bias) {
    out.put(entry.id);
    out.put(entry.bias);
  }
  out.put(params.min_tokens);
  out.put_list(params.min_tokens_mask);
  out.put(static_cast<uint64_t>(params.bad_words.size()));
  for (const std::vector<int32_t>& word : params.bad_words) out.put_list(word);
  out.put(params.seed);
}

SamplingParams get_params(ByteSource& in) {
  SamplingParams params;
  for (float* value : {&params.temperature, &params.top_p, &params.min_p, &params.repetition_penalty,
                       &params.frequency_penalty, &params.presence_penalty}) {
    *value = in.get<float>();
  }
  params.top_k = in.get<int32_t>();
  const uint64_t biases = in.get_count(8);
  for (uint64_t i = 0; i < biases; ++i) {
    const auto id = in.get<int32_t>();
    params.logit_bias.push_back({id, in.get<float>()});
  }
  params.min_tokens = in.get<int64_t>();
  params.min_tokens_mask = in.get_list<int32_t>();
  const uint64_t words = in.get_count(8);
  for (uint64_t i = 0; i < words; ++i) params.bad_words.push_back(in.get_list<int32_t>());
  params.seed = in.get<uint64_t>();
  return params;
}

bool all_known(const std::vector<int32_t>& tokens, int64_t vocab_size) {
  return std::ranges::all_of(tokens, [&](int32_t token) { return token >= 0 && token < vocab_size; });
}

Status check_start(const SamplingStart& start, int64_t vocab_size) {
  QUIRE_RETURN_IF_ERROR(start.params.validate());
  if (start.branches < 1 || start.branches > kMostBranches) return damaged("a prompt has no branch or too many");
  std::vector<int32_t> biased;
  for (const SamplingParams::Bias& entry : start.params.logit_bias) biased.push_back(entry.id);
  bool known = all_known(start.prompt, vocab_size) && all_known(start.params.min_tokens_mask, vocab_size) &&
               all_known(biased, vocab_size);
  for (const std::vector<int32_t>& word : start.params.bad_words) known = known && all_known(word, vocab_size);
  if (known) return {};
  return damaged("sequence " + std::to_string(start.id) + " has tokens outside the vocabulary of " +
                 std::to_string(vocab_size));
}

}  // namespace

std::string StepSampling::bytes() const {
  ByteWriter out;
  out.put_list(ended);
  out.put(static_cast<uint64_t>(started.size()));
  for (const SamplingStart& start : started) {
    out.put(start.id);
    out.put(start.branches);
    put_params(out, start.params);
    out.put_list(start.prompt);
  }
  out.put(static_cast<uint64_t>(rows.size()));
  for (const RowSampling& row : rows) {
    out.put(row.logprobs);
    out.put_list(row.prompt_targets);
  }
  out.put(hash_logits);
  return out.take();
}

Result<StepSampling> StepSampling::parse(std::string_view bytes, const StepPlan& plan, int64_t vocab_size) {
  ByteSource in(bytes);
  StepSampling sampling;
  sampling.ended = in.get_list<SequenceId>();
  const uint64_t starts = in.get_count(64);
  for (uint64_t i = 0; i < starts; ++i) {
    SamplingStart start;
    start.id = in.get<SequenceId>();
    start.branches = in.get<int32_t>();
    start.params = get_params(in);
    start.prompt = in.get_list<int32_t>();
    sampling.started.push_back(std::move(start));
  }
  const uint64_t rows = in.get_count(12);
  for (uint64_t i = 0; i < rows; ++i) {
    const auto logprobs = in.get<int32_t>();
    sampling.rows.push_back({.logprobs = logprobs, .prompt_targets = in.get_list<int32_t>()});
  }
  sampling.hash_logits = in.get_choice(true);
  if (!in.ok() || !in.at_end()) return damaged("its lists do not end where it does");
  if (sampling.rows.size() != plan.rows.size()) return damaged("it is not for as many rows as the plan has");
  for (const SamplingStart& start : sampling.started) QUIRE_RETURN_IF_ERROR(check_start(start, vocab_size));
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const RowSampling& row = sampling.rows[i];
    if (row.prompt_targets.size() > static_cast<size_t>(plan.rows[i].logit_rows) ||
        !all_known(row.prompt_targets, vocab_size) || row.logprobs > vocab_size) {
      return damaged("log-probabilities are asked of rows or tokens that are not there");
    }
  }
  return sampling;
}

}  // namespace quire
