// The hyper-parameters of a decoder-only transformer as its checkpoint states them, whatever the file format.
//
// Filled by the format adapters (gguf_hparams.cc, hf_config.cc), which also validate: every number here is in a
// sane range, heads divide, vectors have one entry a layer. model/ derives its ModelConfig from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire {

enum class RopeScaling { kNone, kLinear, kLlama3, kYarn, kLongrope, kDynamic };

// Rotary embedding of one kind of layer. Formulas: docs/architecture.md names their source, transformers'
// modeling_rope_utils.
struct RopeParams {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;
  int64_t original_context = 0;            // 0: the model's context_length
  double low_freq_factor = 1.0;            // llama3
  double high_freq_factor = 4.0;           // llama3
  double beta_fast = 32.0;                 // yarn
  double beta_slow = 1.0;                  // yarn
  bool truncate = true;                    // yarn: floor and ceil the correction range
  std::optional<double> attention_factor;  // yarn, longrope: multiplies cos and sin; absent: derived from factor
  std::optional<double> mscale;            // yarn
  std::optional<double> mscale_all_dim;    // yarn
  std::vector<float> short_factors;        // longrope, rope_dim / 2 entries
  std::vector<float> long_factors;         // longrope
};

struct Hparams {
  std::string architecture;  // family by its GGUF name: "llama", "qwen2", "gemma3", ...
  std::string name;          // what the file calls the model; may be empty

  int64_t vocab_size = 0;
  int64_t context_length = 0;  // trained context, tokens
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_hidden = 0;
  float rms_norm_eps = 1e-5f;
  bool tied_embeddings = false;     // the head is token_embd; no output.weight is used
  std::string activation = "silu";  // "silu" or "gelu_tanh"

  int64_t rope_dim = 0;                  // rotary dimensions of a head, even, <= head_dim
  RopeParams rope;                       // full-attention layers
  std::optional<RopeParams> rope_local;  // sliding-window layers, where they differ

  int64_t sliding_window = 0;      // tokens; 0: none. Key j is visible to query i iff i - window < j <= i
  std::vector<bool> layer_slides;  // one per layer: attends within the window only

  std::optional<float> attention_scale;  // absent: 1 / sqrt(head_dim)
  float attention_softcap = 0.0f;        // 0: none
  float final_softcap = 0.0f;            // 0: none

  // From generation_config.json, config.json or the GGUF tokenizer keys; the union is what ends a generation.
  std::vector<int32_t> eos_token_ids;
  std::optional<float> default_temperature;  // 0: the model is meant to be greedy
  std::optional<int32_t> default_top_k;
  std::optional<float> default_top_p;
  std::optional<float> default_min_p;
  std::optional<float> default_repetition_penalty;
};

}  // namespace quire
