#include "formats/hf_generation_config.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

namespace quire {
namespace {

// A key, and the value at which it changes nothing; "*" where none does: lengths, caches, beams' details, what is
// returned beside the text.
struct IdleKey {
  std::string_view name;
  std::string_view idle;
};
constexpr IdleKey kIdleKeys[] = {
    {"_commit_hash", "*"},
    {"_from_model_config", "*"},
    {"assistant_confidence_threshold", "*"},
    {"assistant_early_exit", "*"},
    {"assistant_lookbehind", "*"},
    {"begin_suppress_tokens", "[]"},
    {"bad_words_ids", "[]"},
    {"bos_token_id", "*"},
    {"cache_config", "*"},
    {"cache_implementation", "*"},
    {"chat_format", "*"},
    {"compile_config", "*"},
    {"constraints", "[]"},
    {"continuous_batching_config", "*"},
    {"decoder_start_token_id", "*"},
    {"disable_compile", "*"},
    {"diversity_penalty", "0.0"},
    {"early_stopping", "*"},
    {"encoder_no_repeat_ngram_size", "*"},
    {"encoder_repetition_penalty", "*"},
    {"epsilon_cutoff", "0.0"},
    {"eta_cutoff", "0.0"},
    {"force_words_ids", "[]"},
    {"guidance_scale", "1.0"},
    {"is_assistant", "*"},
    {"length_penalty", "*"},
    {"low_memory", "*"},
    {"max_cache_len", "*"},
    {"max_length", "20"},
    {"max_matching_ngram_size", "*"},
    {"max_window_size", "*"},
    {"min_length", "0"},
    {"no_repeat_ngram_size", "0"},
    {"num_assistant_tokens", "*"},
    {"num_assistant_tokens_schedule", "*"},
    {"num_beam_groups", "1"},
    {"num_beams", "1"},
    {"num_return_sequences", "1"},
    {"output_attentions", "*"},
    {"output_hidden_states", "*"},
    {"output_logits", "*"},
    {"output_scores", "*"},
    {"pad_token_id", "*"},
    {"penalty_alpha", "0.0"},
    {"prefill_chunk_size", "*"},
    {"prompt_lookup_num_tokens", "*"},
    {"remove_invalid_values", "*"},
    {"renormalize_logits", "*"},
    {"return_dict_in_generate", "*"},
    {"sequence_bias", "[]"},
    {"speculation_type", "*"},
    {"suppress_tokens", "[]"},
    {"target_lookbehind", "*"},
    {"transformers_version", "*"},
    {"trust_remote_code", "*"},
    {"typical_p", "1.0"},
    {"use_cache", "*"},
    {"use_mtp", "*"},
};
constexpr std::string_view kRead[] = {"do_sample",   "eos_token_id", "min_p", "repetition_penalty",
                                      "temperature", "top_k",        "top_p"};

// 1 and 1.0 are the same.
bool holds(const HfJson& object, const std::string& key, std::string_view idle) {
  if (idle == "*") return true;
  std::string text = object.value_text(key);
  if (text.find_first_of(".[") == std::string::npos && idle.ends_with(".0")) text += ".0";
  if (!idle.ends_with(".0") && text.ends_with(".0")) text.resize(text.size() - 2);
  return text == idle || text == "{}" || text == "false";
}

void note_keys(const HfJson& generation, std::vector<std::string>* remarks) {
  for (const std::string& key : generation.keys()) {
    if (std::ranges::find(kRead, key) != std::end(kRead)) continue;
    const auto* known = std::ranges::find(kIdleKeys, key, &IdleKey::name);
    if (known != std::end(kIdleKeys) && holds(generation, key, known->idle)) continue;
    const std::string value = generation.value_text(key);
    if (value == "false" || value == "[]" || value == "{}") continue;
    const bool length = key == "max_length" || key == "max_new_tokens";
    remarks->push_back(generation.where() + ": \"" + key + "\": " + value + " is not obeyed; " +
                       (length ? "how long an answer may be is for each request to say" : "quire has nothing like it"));
  }
}

Result<std::optional<float>> find_within(const HfJson& object, const std::string& key, double low, double high) {
  QUIRE_ASSIGN_OR_RETURN(const auto given, object.find_float(key));
  if (!given) return std::optional<float>();
  if (*given >= low && *given <= high) return std::optional<float>(static_cast<float>(*given));
  return object.error(
      key, "is " + object.value_text(key) + ", not within " + std::to_string(low) + " and " + std::to_string(high));
}

}  // namespace

Status add_end_tokens(const HfJson& object, std::vector<int32_t>* ids) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, object.find_int_or_ints("eos_token_id"));
  for (const int64_t id : given) {
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      return object.error("eos_token_id", "holds " + std::to_string(id));
    }
    if (std::ranges::find(*ids, id) == ids->end()) ids->push_back(static_cast<int32_t>(id));
  }
  std::ranges::sort(*ids);
  return {};
}

Status read_hf_generation_config(const HfJson& generation, Hparams* h, std::vector<std::string>* remarks) {
  constexpr double kMax = std::numeric_limits<float>::max();
  note_keys(generation, remarks);
  const std::vector<int32_t> of_config = h->eos_token_ids;
  std::vector<int32_t> of_generation;
  QUIRE_RETURN_IF_ERROR(add_end_tokens(generation, &of_generation));
  QUIRE_RETURN_IF_ERROR(add_end_tokens(generation, &h->eos_token_ids));
  if (!of_generation.empty() && h->eos_token_ids.size() != of_generation.size()) {
    remarks->push_back(generation.where() + ": \"eos_token_id\" is " + generation.value_text("eos_token_id") +
                       ", and config.json names others; each of both ends an answer");
  }
  QUIRE_ASSIGN_OR_RETURN(h->default_repetition_penalty,
                         find_within(generation, "repetition_penalty", std::numeric_limits<float>::min(), kMax));
  QUIRE_ASSIGN_OR_RETURN(const auto sample, generation.find_bool("do_sample"));
  // Where the file says nothing, its other keys are what a base class left there.
  if (!sample) return {};
  QUIRE_ASSIGN_OR_RETURN(h->default_temperature, find_within(generation, "temperature", 0.0, kMax));
  QUIRE_ASSIGN_OR_RETURN(h->default_top_p, find_within(generation, "top_p", 0.0, 1.0));
  QUIRE_ASSIGN_OR_RETURN(h->default_min_p, find_within(generation, "min_p", 0.0, 1.0));
  QUIRE_ASSIGN_OR_RETURN(const auto top_k, generation.find_int("top_k"));
  if (top_k && (*top_k < -1 || *top_k > std::numeric_limits<int32_t>::max())) {
    return generation.error("top_k", "is " + std::to_string(*top_k));
  }
  if (top_k) h->default_top_k = static_cast<int32_t>(std::max<int64_t>(*top_k, 0));  // -1, as 0: off
  if (!*sample) h->default_temperature = 0.0f;
  return {};
}

}  // namespace quire
