#include "model/layer.h"

namespace quire {

void attend(const LayerStep& step) {
  const ModelConfig& config = step.config;
  const LayerWeights& w = step.weights;
  const auto rope = static_cast<size_t>(step.layer.rope);
  step.device.qkv_project(
      {.in = step.work.attn_in.get(),
       .q = w.q,
       .k = w.k,
       .v = w.v,
       .q_bias = w.q_bias,
       .k_bias = w.k_bias,
       .v_bias = w.v_bias,
       .k_factors = step.k_factors,
       .statistics = step.statistics,
       .q_norm = {w.q_norm, config.norm_eps},
       .k_norm = {w.k_norm, config.norm_eps},
       .shape = config.heads,
       .rope = {.cos = step.work.rope_cos[rope], .sin = step.work.rope_sin[rope], .dim = config.rope_dim},
       .spans = step.spans,
       .kv = step.kv,
       .q_out = step.work.q});
  step.device.attention({.q = step.work.q,
                         .shape = config.heads,
                         .spans = step.spans,
                         .kv = step.kv,
                         .scale = config.attention_scale,
                         .softcap = config.attention_softcap,
                         .window = config.kv_groups[static_cast<size_t>(step.layer.kv_group)].window,
                         .scratch = step.work.attention_scratch,
                         .out = step.work.attn_out.get()});
}

void project_attention(const LayerStep& step) {
  const LayerWeights& w = step.weights;
  step.device.project({.in = step.work.attn_out.get(),
                       .weight = w.o,
                       .bias = w.o_bias,
                       .post_norm = {w.post_attn_norm, step.config.norm_eps},
                       .partial = step.work.partial,
                       .x = step.x,
                       .rows = step.rows,
                       .next_norm = {w.ffn_norm, step.config.norm_eps},
                       .next = step.work.ffn_in.get()});
}

void gate_up(const LayerStep& step) {
  const LayerWeights& w = step.weights;
  step.device.gate_up({.in = step.work.ffn_in.get(),
                       .gate = w.gate,
                       .up = w.up,
                       .gate_bias = w.gate_bias,
                       .up_bias = w.up_bias,
                       .activation = step.config.activation,
                       .out = step.work.ffn_mid.get()});
}

void project_ffn(const LayerStep& step, const float* next_norm) {
  const LayerWeights& w = step.weights;
  step.device.project({.in = step.work.ffn_mid.get(),
                       .weight = w.down,
                       .bias = w.down_bias,
                       .post_norm = {w.post_ffn_norm, step.config.norm_eps},
                       .partial = step.work.partial,
                       .x = step.x,
                       .rows = step.rows,
                       .next_norm = {next_norm, step.config.norm_eps},
                       .next = next_norm == nullptr ? nullptr : step.work.attn_in.get()});
}

}  // namespace quire
