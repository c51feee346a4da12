// The model families quire reads, as rows of one table: their names in either format and how their files differ.
// What no field says, a file in model/ computes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/hparams.h"

namespace quire {

enum class Presence { kAbsent, kOptional, kAlways };

// Which linear layers carry a bias.
struct BiasRules {
  Presence qkv = Presence::kAbsent;
  Presence output = Presence::kAbsent;
  Presence mlp = Presence::kAbsent;
};

struct Family {
  std::string_view name;                             // GGUF's general.architecture
  std::span<const std::string_view> hf_model_types;  // config.json's model_type
  std::string_view activation;                       // Hparams::activation
  BiasRules gguf_biases;
  bool gguf_interleaved_qk;  // Q and K rows are stored as pairs (2i, 2i + 1)
  bool qk_norm;              // has attn_q_norm and attn_k_norm, one weight a head element
  bool post_norms;           // has post_attention_norm and post_ffw_norm, on what attention and MLP return
  bool scaled_embedding;     // embeddings are multiplied by sqrt(hidden)
  bool hf_norms_add_one;     // Hugging Face stores w of (1 + w)
  bool hf_tied_by_default;   // tie_word_embeddings, where config.json is silent
};

const Family* family_by_name(std::string_view gguf_architecture);  // null: unknown
const Family* family_by_model_type(std::string_view model_type);   // null: unknown
std::string supported_architectures();                             // "llama, qwen2, gemma3"
std::string supported_model_types();                               // "llama, mistral, qwen2, ..."

}  // namespace quire
