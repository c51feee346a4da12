#include "model/registry.h"

#include <cmath>
#include <string>

#include "device/device_sizes.h"
#include "formats/families.h"
#include "formats/hparams_check.h"

namespace quire {
namespace {

constexpr int64_t kMaxGroup = 32;  // heads that share a KV head, at most

static_assert(kMaxReadHeadDim == kMaxHeadDim, "heads that files are read with, and that attention takes");

ModelConfig config_of(const Hparams& hparams, const Family& family) {
  ModelConfig config;
  config.vocab_size = hparams.vocab_size;
  config.context_length = hparams.context_length;
  config.hidden = hparams.hidden;
  config.ffn_hidden = hparams.ffn_hidden;
  config.heads = {.heads = hparams.heads, .kv_heads = hparams.kv_heads, .head_dim = hparams.head_dim};
  config.rope_dim = hparams.rope_dim;
  config.norm_eps = hparams.rms_norm_eps;
  config.attention_scale = hparams.attention_scale.value_or(1.0f / std::sqrt(static_cast<float>(hparams.head_dim)));
  config.attention_softcap = hparams.attention_softcap;
  config.final_softcap = hparams.final_softcap;
  config.activation = hparams.activation == "silu" ? Activation::kSilu : Activation::kGeluTanh;
  config.embedding_scale = family.scaled_embedding ? std::sqrt(static_cast<float>(hparams.hidden)) : 1.0f;
  config.post_norms = family.post_norms;
  config.tied_embeddings = hparams.tied_embeddings;
  config.ropes.push_back(hparams.rope);
  if (hparams.rope_local.has_value()) config.ropes.push_back(*hparams.rope_local);

  int global_group = -1;
  int window_group = -1;
  for (int64_t i = 0; i < hparams.layers; ++i) {
    const bool slides = hparams.sliding_window > 0 && static_cast<size_t>(i) < hparams.layer_slides.size() &&
                        hparams.layer_slides[static_cast<size_t>(i)];
    int& group = slides ? window_group : global_group;
    if (group < 0) {
      group = static_cast<int>(config.kv_groups.size());
      config.kv_groups.push_back({.name = slides ? "window " + std::to_string(hparams.sliding_window) : "global",
                                  .window = slides ? hparams.sliding_window : 0});
    }
    KvGroup& kv = config.kv_groups[static_cast<size_t>(group)];
    const int rope = slides && hparams.rope_local.has_value() ? 1 : 0;
    config.layers.push_back({.kv_group = group, .index_in_group = kv.layers++, .rope = rope});
  }
  return config;
}

}  // namespace

Result<ModelConfig> configure_model(const Hparams& hparams) {
  if (hparams.head_dim > kMaxHeadDim || hparams.heads > kMaxGroup * hparams.kv_heads) {
    return unsupported("attention with head dimension " + std::to_string(hparams.head_dim) + " and " +
                       std::to_string(hparams.heads) + "/" + std::to_string(hparams.kv_heads) + " heads: at most " +
                       std::to_string(kMaxHeadDim) + " and " + std::to_string(kMaxGroup) +
                       " heads a KV head are supported");
  }
  for (const RopeParams* rope :
       {&hparams.rope, hparams.rope_local.has_value() ? &*hparams.rope_local : &hparams.rope}) {
    if (rope->scaling == RopeScaling::kLongrope || rope->scaling == RopeScaling::kDynamic) {
      return unsupported(
          "rope scaling \"longrope\" and \"dynamic\" are not supported; none, linear, llama3 and yarn are");
    }
  }
  if (const Family* family = family_by_name(hparams.architecture)) return config_of(hparams, *family);
  return unsupported("architecture \"" + hparams.architecture +
                     "\" is not supported; known: " + supported_architectures());
}

}  // namespace quire
