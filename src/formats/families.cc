#include "formats/families.h"

#include <algorithm>

namespace quire {
namespace {

constexpr std::string_view kLlamaTypes[] = {"llama", "mistral"};
constexpr std::string_view kQwen2Types[] = {"qwen2"};
constexpr std::string_view kQwen3Types[] = {"qwen3"};
constexpr std::string_view kGemma3Types[] = {"gemma3_text", "gemma3"};

// Llama: RMSNorm before attention and MLP, SiLU-gated MLP, rotary embedding on all of a head; biases where the checkpoint has
// them. Qwen2: biases on q, k and v. Qwen3: a norm on each head of q and k instead. Gemma 3: GELU-gated MLP, norms also behind
// attention and MLP, sliding-window layers with a rope of their own between the global ones.
constexpr Family kFamilies[] = {
    {.name = "llama",
     .hf_model_types = kLlamaTypes,
     .activation = "silu",
     .gguf_biases = {Presence::kOptional, Presence::kOptional, Presence::kOptional},
     .gguf_interleaved_qk = true,
     .qk_norm = false,
     .post_norms = false,
     .scaled_embedding = false,
     .hf_norms_add_one = false,
     .hf_tied_by_default = false},
    {.name = "qwen2",
     .hf_model_types = kQwen2Types,
     .activation = "silu",
     .gguf_biases = {Presence::kAlways, Presence::kAbsent, Presence::kAbsent},
     .gguf_interleaved_qk = false,
     .qk_norm = false,
     .post_norms = false,
     .scaled_embedding = false,
     .hf_norms_add_one = false,
     .hf_tied_by_default = false},
    {.name = "qwen3",
     .hf_model_types = kQwen3Types,
     .activation = "silu",
     .gguf_biases = {},
     .gguf_interleaved_qk = false,
     .qk_norm = true,
     .post_norms = false,
     .scaled_embedding = false,
     .hf_norms_add_one = false,
     .hf_tied_by_default = false},
    {.name = "gemma3",
     .hf_model_types = kGemma3Types,
     .activation = "gelu_tanh",
     .gguf_biases = {},
     .gguf_interleaved_qk = false,
     .qk_norm = true,
     .post_norms = true,
     .scaled_embedding = true,
     .hf_norms_add_one = true,
     .hf_tied_by_default = true},
};

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

}  // namespace

const Family* family_by_name(std::string_view gguf_architecture) {
  const auto* found = std::ranges::find(kFamilies, gguf_architecture, &Family::name);
  return found != std::end(kFamilies) ? found : nullptr;
}

const Family* family_by_model_type(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (std::ranges::find(family.hf_model_types, model_type) != family.hf_model_types.end()) return &family;
  }
  return nullptr;
}

std::string supported_architectures() {
  std::string list;
  for (const Family& family : kFamilies) append(list, family.name);
  return list;
}

std::string supported_model_types() {
  std::string list;
  for (const Family& family : kFamilies) {
    for (const std::string_view type : family.hf_model_types) append(list, type);
  }
  return list;
}

}  // namespace quire
