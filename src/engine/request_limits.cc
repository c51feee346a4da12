#include "engine/request_limits.h"

#include <algorithm>
#include <string>
#include <vector>

namespace quire {
namespace {

// Notes which field is being looked at, for the caller that wants to know where the first error was.
class Field {
 public:
  explicit Field(std::string_view* name) : name_(name) {}
  void at(std::string_view name) const {
    if (name_ != nullptr) *name_ = name;
  }

 private:
  std::string_view* name_;
};

Status check_tokens(const std::vector<int32_t>& ids, int64_t vocab_size, const char* what) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return invalid_argument(std::string(what) + " names token " + std::to_string(id) + ", but the vocabulary has " +
                            std::to_string(vocab_size));
  }
  return {};
}

}  // namespace

RequestLimits RequestLimits::of(const Scheduler& scheduler, int64_t vocab_size, int64_t context,
                                int64_t trained_context) {
  return {.vocab_size = vocab_size,
          .context = context,
          .trained_context = trained_context,
          .kv_tokens = scheduler.cache().most_tokens(),
          .max_choices = scheduler.config().max_seqs};
}

// The last token is never computed, so it needs no slot of the cache.
int64_t RequestLimits::answer_room(int64_t prompt_tokens) const {
  return std::min(context, kv_tokens + 1) - prompt_tokens;
}

Status RequestLimits::check_length(int64_t prompt_tokens, int64_t max_tokens, std::string_view* field) const {
  const Field about(field);
  about.at("prompt");
  if (prompt_tokens < 1) return invalid_argument("the prompt has no tokens");
  const int64_t wanted = max_tokens < 0 ? 1 : max_tokens;
  if (prompt_tokens <= kv_tokens && wanted <= answer_room(prompt_tokens)) return {};
  if (answer_room(prompt_tokens) >= 1) about.at("max_tokens");
  const bool by_cache = kv_tokens + 1 < context;
  std::string message = (by_cache ? "the KV cache holds " : "the context is ") +
                        std::to_string(by_cache ? kv_tokens : context) + " tokens" +
                        (by_cache ? " of a sequence" : "") + "; the prompt has " + std::to_string(prompt_tokens);
  if (max_tokens > 0) {
    message += " and max_tokens asks for " + std::to_string(max_tokens);
    // Not where the sum is no number.
    if (max_tokens <= INT64_MAX - prompt_tokens)
      message += " (together " + std::to_string(prompt_tokens + max_tokens) + ")";
  }
  message += ": shorten the prompt";
  if (max_tokens > 1) message += " or lower max_tokens";
  if (by_cache) {
    message += ", or give the cache more memory with --kv-memory";
  } else if (context < trained_context) {
    message += ", or raise --context (this model: at most " + std::to_string(trained_context) + ")";
  }
  return out_of_range(message);
}

Status RequestLimits::check(const Request& request, std::string_view* field) const {
  const Field about(field);
  QUIRE_RETURN_IF_ERROR(check_length(static_cast<int64_t>(request.prompt.size()), request.max_tokens, field));
  about.at("prompt");
  QUIRE_RETURN_IF_ERROR(check_tokens(request.prompt, vocab_size, "the prompt"));
  about.at("n");
  if (request.choices < 1 || request.choices > max_choices) {
    return invalid_argument("n is " + std::to_string(request.choices) + "; it must be between 1 and " +
                            std::to_string(max_choices) + ", the sequences that run at once (--max-seqs)");
  }
  about.at("priority");
  if (request.priority < -kMaxPriority || request.priority > kMaxPriority) {
    return invalid_argument("priority is " + std::to_string(request.priority) + "; it must be between " +
                            std::to_string(-kMaxPriority) + " and " + std::to_string(kMaxPriority));
  }
  about.at({});  // the messages name the field of the sampling parameters
  QUIRE_RETURN_IF_ERROR(request.sampling.validate());
  about.at("stop_token_ids");
  QUIRE_RETURN_IF_ERROR(check_tokens(request.stop_token_ids, vocab_size, "stop_token_ids"));
  about.at("logit_bias");
  std::vector<int32_t> biased;
  for (const SamplingParams::Bias& entry : request.sampling.logit_bias) biased.push_back(entry.id);
  QUIRE_RETURN_IF_ERROR(check_tokens(biased, vocab_size, "logit_bias"));
  about.at("bad_words");
  for (const std::vector<int32_t>& word : request.sampling.bad_words)
    QUIRE_RETURN_IF_ERROR(check_tokens(word, vocab_size, "bad_words"));
  return {};
}

}  // namespace quire
