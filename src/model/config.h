// What the forward pass needs to know of a model: its shape, and for each layer which KV group, rope and window it
// has. Derived once from a checkpoint's Hparams by the model's family (model/registry.h); immutable afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "formats/hparams.h"

namespace quire {

// Layers that share a page table: all of them in most models, global and sliding-window layers in some.
struct KvGroup {
  std::string name;    // "global" or "window 512"
  int64_t window = 0;  // tokens; 0: every earlier token is seen
  int64_t layers = 0;
};

struct LayerConfig {
  int kv_group = 0;
  int64_t index_in_group = 0;
  int rope = 0;  // index into ModelConfig::ropes
};

struct ModelConfig {
  int64_t vocab_size = 0;
  int64_t context_length = 0;
  int64_t hidden = 0;
  int64_t ffn_hidden = 0;
  HeadShape heads;
  int64_t rope_dim = 0;
  float norm_eps = 0;

  float embedding_scale = 1;
  float attention_scale = 1;
  float attention_softcap = 0;
  float final_softcap = 0;
  Activation activation = Activation::kSilu;
  bool post_norms = false;  // norms on the outputs of attention and MLP, before the residual
  bool tied_embeddings = false;

  std::vector<KvGroup> kv_groups;
  std::vector<RopeParams> ropes;
  std::vector<LayerConfig> layers;
};

}  // namespace quire
