#include "model/weights.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace quire {
namespace {

// Walks the tensors of a model in one order, for counting, listing and loading alike: what is counted is what is
// taken. A visitor sees each matrix and vector with the place it goes to.
template <typename Matrix, typename Vector>
void visit_weights(const ModelConfig& config, const Checkpoint& checkpoint, ModelWeights& weights, Matrix&& matrix,
                   Vector&& vector) {
  auto find = [&](const std::string& name) { return checkpoint.find(name); };
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    const std::string prefix = "blk." + std::to_string(i) + ".";
    vector(find(prefix + "attn_norm.weight"), layer.attn_norm);
    matrix(find(prefix + "attn_q.weight"), layer.q);
    matrix(find(prefix + "attn_k.weight"), layer.k);
    matrix(find(prefix + "attn_v.weight"), layer.v);
    vector(find(prefix + "attn_q.bias"), layer.q_bias);
    vector(find(prefix + "attn_k.bias"), layer.k_bias);
    vector(find(prefix + "attn_v.bias"), layer.v_bias);
    vector(find(prefix + "attn_q_norm.weight"), layer.q_norm);
    vector(find(prefix + "attn_k_norm.weight"), layer.k_norm);
    matrix(find(prefix + "attn_output.weight"), layer.o);
    vector(find(prefix + "attn_output.bias"), layer.o_bias);
    vector(config.post_norms ? find(prefix + "post_attention_norm.weight") : nullptr, layer.post_attn_norm);
    vector(find(prefix + "ffn_norm.weight"), layer.ffn_norm);
    matrix(find(prefix + "ffn_gate.weight"), layer.gate);
    matrix(find(prefix + "ffn_up.weight"), layer.up);
    vector(find(prefix + "ffn_gate.bias"), layer.gate_bias);
    vector(find(prefix + "ffn_up.bias"), layer.up_bias);
    matrix(find(prefix + "ffn_down.weight"), layer.down);
    vector(find(prefix + "ffn_down.bias"), layer.down_bias);
    vector(config.post_norms ? find(prefix + "post_ffw_norm.weight") : nullptr, layer.post_ffn_norm);
  }
  vector(find("output_norm.weight"), weights.output_norm);
  matrix(find(config.tied_embeddings ? "token_embd.weight" : "output.weight"), weights.head);
}

ModelWeights empty_weights(const ModelConfig& config) {
  ModelWeights weights;
  weights.layers.resize(config.layers.size());
  return weights;
}

}  // namespace

int64_t weight_bytes(const ModelConfig& config, const Checkpoint& checkpoint, const Device& device) {
  ModelWeights weights = empty_weights(config);
  Arena count;
  visit_weights(
      config, checkpoint, weights,
      [&](const TensorRef* tensor, LinearWeight&) {
        if (tensor != nullptr)
          count.take<std::byte>(device.packed_bytes(tensor->dtype, tensor->rows(), tensor->columns()));
      },
      [&](const TensorRef* tensor, const float*&) {
        if (tensor != nullptr) count.take<float>(tensor->rows() * tensor->columns());
      });
  return count.used();
}

Result<ModelWeights> load_weights(const ModelConfig& config, const Checkpoint& checkpoint, Device& device,
                                  const std::function<void(double)>& progress) {
  ModelWeights weights = empty_weights(config);
  const int64_t total = weight_bytes(config, checkpoint, device);
  QUIRE_ASSIGN_OR_RETURN(weights.memory, Buffer::allocate(total, "the weights"));
  Arena arena(weights.memory.data());
  visit_weights(
      config, checkpoint, weights,
      [&](const TensorRef* tensor, LinearWeight& weight) {
        if (tensor == nullptr) return;
        const LinearSource source = {
            .dtype = tensor->dtype, .n = tensor->rows(), .k = tensor->columns(), .row = [tensor](int64_t row) {
              return tensor->row(row);
            }};
        weight = device.pack(source, arena.take<std::byte>(device.packed_bytes(source.dtype, source.n, source.k)));
        if (progress) progress(static_cast<double>(arena.used()) / static_cast<double>(total));
      },
      [&](const TensorRef* tensor, const float*& vector) {
        if (tensor == nullptr) return;
        float* values = arena.take<float>(tensor->rows() * tensor->columns());
        tensor->decode_f32(0, tensor->rows(), values);
        vector = values;
      });
  QUIRE_CHECK(arena.used() == total);
  weights.embedding = checkpoint.find("token_embd.weight");
  return weights;
}

LinearReaders linear_readers(const ModelConfig& config, const Checkpoint& checkpoint) {
  LinearReaders readers;
  auto add = [&](std::vector<DType>& to, const std::string& name) {
    const TensorRef* tensor = checkpoint.find(name);
    if (tensor != nullptr && std::find(to.begin(), to.end(), tensor->dtype) == to.end()) to.push_back(tensor->dtype);
  };
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    for (const char* name : {"attn_q.weight", "attn_k.weight", "attn_v.weight"}) add(readers.qkv, prefix + name);
    add(readers.o, prefix + "attn_output.weight");
    for (const char* name : {"ffn_gate.weight", "ffn_up.weight"}) add(readers.gate_up, prefix + name);
    add(readers.down, prefix + "ffn_down.weight");
  }
  add(readers.head, config.tied_embeddings ? "token_embd.weight" : "output.weight");
  return readers;
}

}  // namespace quire
