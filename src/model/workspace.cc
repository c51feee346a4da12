#include "model/workspace.h"

#include <cstring>
#include <utility>

namespace quire {
namespace {

// With a null `device` nothing is made, memory is only counted.
void lay_out(const ModelConfig& config, const LinearReaders& readers, const DeviceSizes& sizes, Device* device,
             Arena& arena, Workspace& w) {
  const int64_t rows = w.limits.max_rows;
  const HeadShape& shape = config.heads;
  auto activations = [&](int64_t k, const std::vector<WeightType>& types) -> std::unique_ptr<LinearInput> {
    const ActivationShape each = {.max_rows = rows, .k = k, .readers = types, .keep_values = w.limits.keep_inputs};
    std::byte* memory = arena.take<std::byte>(sizes.activation_bytes(each));
    return device == nullptr ? nullptr : device->make_linear_input(each, memory);
  };
  w.x = arena.take<float>(rows * config.hidden);
  w.q = arena.take<float>(rows * shape.heads * shape.head_dim);
  if (config.post_norms) w.partial = arena.take<float>(rows * config.hidden);
  w.attention_scratch = arena.take<float>(sizes.attention_scratch_floats(shape, w.limits.max_context));
  for (size_t i = 0; i < config.ropes.size(); ++i) {
    w.rope_cos.push_back(arena.take<float>(rows * config.rope_dim / 2));
    w.rope_sin.push_back(arena.take<float>(rows * config.rope_dim / 2));
  }
  w.attn_in = activations(config.hidden, readers.qkv);
  w.attn_out = activations(shape.heads * shape.head_dim, readers.o);
  w.ffn_in = activations(config.hidden, readers.gate_up);
  w.ffn_mid = activations(config.ffn_hidden, readers.down);
  w.head_in = activations(config.hidden, readers.head);
}

}  // namespace

int64_t Workspace::bytes(const ModelConfig& config, const LinearReaders& readers, const WorkspaceLimits& limits,
                         const DeviceSizes& sizes) {
  Workspace counted;
  counted.limits = limits;
  Arena arena;
  lay_out(config, readers, sizes, nullptr, arena, counted);
  return arena.used();
}

Result<Workspace> Workspace::create(const ModelConfig& config, const LinearReaders& readers,
                                    const WorkspaceLimits& limits, Device& device) {
  Workspace workspace;
  workspace.limits = limits;
  QUIRE_ASSIGN_OR_RETURN(workspace.memory,
                         Buffer::allocate(bytes(config, readers, limits, device.sizes()), "the workspace"));
  std::memset(workspace.memory.data(), 0, static_cast<size_t>(workspace.memory.size()));
  Arena arena(workspace.memory.data());
  lay_out(config, readers, device.sizes(), &device, arena, workspace);
  return workspace;
}

}  // namespace quire
