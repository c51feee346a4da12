#include "formats/hf_known_keys.h"

#include <algorithm>
#include <span>

namespace quire {
namespace {

using Keys = std::span<const std::string_view>;

constexpr std::string_view kReadByAll[] = {"_name_or_path",
                                           "architectures",
                                           "compression_config",
                                           "eos_token_id",
                                           "head_dim",
                                           "hidden_size",
                                           "intermediate_size",
                                           "max_position_embeddings",
                                           "model_type",
                                           "num_attention_heads",
                                           "num_hidden_layers",
                                           "num_key_value_heads",
                                           "original_max_position_embeddings",
                                           "partial_rotary_factor",
                                           "quantization_config",
                                           "rms_norm_eps",
                                           "rope_parameters",
                                           "rope_scaling",
                                           "rope_theta",
                                           "text_config",
                                           "tie_word_embeddings",
                                           "tokenizer_class",
                                           "use_bidirectional_attention",
                                           "vocab_size"};
constexpr std::string_view kLlama[] = {"hidden_act", "attention_bias", "mlp_bias"};
constexpr std::string_view kMistral[] = {"hidden_act", "sliding_window", "layer_types"};
constexpr std::string_view kQwen2[] = {"hidden_act", "use_sliding_window", "sliding_window", "max_window_layers",
                                       "layer_types"};
constexpr std::string_view kQwen3[] = {"hidden_act",        "use_sliding_window", "sliding_window",
                                       "max_window_layers", "attention_bias",     "layer_types"};
constexpr std::string_view kGemma3[] = {"hidden_activation",   "attention_bias",         "query_pre_attn_scalar",
                                        "sliding_window",      "sliding_window_pattern", "_sliding_window_pattern",
                                        "layer_types",         "attn_logit_softcapping", "final_logit_softcapping",
                                        "rope_local_base_freq"};

// Beside a text_config: what is read from the whole, and what belongs to the parts that are not run.
constexpr std::string_view kOuter[] = {"boi_token_id",   "boi_token_index",   "eoi_token_id",        "eoi_token_index",
                                       "image_token_id", "image_token_index", "mm_tokens_per_image", "vision_config"};

constexpr std::string_view kHarmless[] = {"_attn_implementation",
                                          "_attn_implementation_autoset",
                                          "_commit_hash",
                                          "add_cross_attention",
                                          "attention_dropout",
                                          "attn_implementation",
                                          "auto_map",
                                          "bos_token_id",
                                          "cache_implementation",
                                          "chunk_size_feed_forward",
                                          "cross_attention_hidden_size",
                                          "dtype",
                                          "embd_pdrop",
                                          "finetuning_task",
                                          "hidden_dropout",
                                          "id2label",
                                          "initializer_range",
                                          "is_decoder",
                                          "is_llama_config",
                                          "label2id",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "pad_token_id",
                                          "prefix",
                                          "pretraining_tp",
                                          "problem_type",
                                          "resid_pdrop",
                                          "return_dict",
                                          "sep_token_id",
                                          "task_specific_params",
                                          "tie_encoder_decoder",
                                          "torch_dtype",
                                          "torchscript",
                                          "transformers.js_config",
                                          "transformers_version",
                                          "unsloth_fixed",
                                          "unsloth_version",
                                          "use_cache",
                                          "use_return_dict"};

bool contains(Keys keys, std::string_view key) { return std::ranges::find(keys, key) != keys.end(); }

Keys read_by(std::string_view model_type) {
  if (model_type == "llama") return kLlama;
  if (model_type == "mistral") return kMistral;
  if (model_type == "qwen2") return kQwen2;
  if (model_type == "qwen3") return kQwen3;
  return kGemma3;
}

void note(const HfJson& object, const std::string& key, const std::string& why, std::vector<std::string>* remarks) {
  const std::string value = object.value_text(key);
  if (value == "false" || value == "[]" || value == "{}") return;
  remarks->push_back(object.where() + ": \"" + key + "\": " + value + why);
}

}  // namespace

void note_unknown_keys(const HfJson& outer, const HfJson& text, std::string_view model_type,
                       std::vector<std::string>* remarks) {
  const std::string why = " has no effect on a " + std::string(model_type) + " model";
  for (const std::string& key : text.keys()) {
    if (contains(kReadByAll, key) || contains(kHarmless, key) || contains(read_by(model_type), key)) continue;
    if (&outer == &text && contains(kOuter, key)) continue;
    note(text, key, why, remarks);
  }
  if (&outer == &text) return;
  constexpr std::string_view kReadOutside[] = {"_name_or_path",       "architectures", "compression_config",
                                               "eos_token_id",        "model_type",    "quantization_config",
                                               "tie_word_embeddings", "text_config",   "tokenizer_class"};
  for (const std::string& key : outer.keys()) {
    if (contains(kReadOutside, key) || contains(kHarmless, key) || contains(kOuter, key)) continue;
    if (text.has(key) && text.same_value(outer, key)) continue;
    note(outer, key, " has no effect beside text_config, which is read instead", remarks);
  }
}

}  // namespace quire
