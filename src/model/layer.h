// One transformer layer, in the four steps between which the inputs of its linears stand in the workspace: the forward pass
// runs them one after another, layer-wise quantization runs each over all of its text.
#pragma once

#include <cstdint>
#include <span>

#include "device/device.h"
#include "model/config.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace quire {

struct LayerStep {
  Device& device;
  const ModelConfig& config;
  const LayerConfig& layer;
  const LayerWeights& weights;
  const float* k_factors = nullptr;           // device/device.h, QkvArgs
  const QkvStatistics* statistics = nullptr;  // the same
  Workspace& work;
  std::span<const SequenceSpan> spans;  // of the layer's KV group
  KvLayer kv;
  float* x = nullptr;  // [rows][hidden], the residual stream
  int64_t rows = 0;
};

void attend(const LayerStep& step);                               // work.attn_in -> pages, work.attn_out
void project_attention(const LayerStep& step);                    // work.attn_out -> x, work.ffn_in
void gate_up(const LayerStep& step);                              // work.ffn_in -> work.ffn_mid
void project_ffn(const LayerStep& step, const float* next_norm);  // work.ffn_mid -> x, and with a norm work.attn_in

}  // namespace quire
