// A model's weights on its device: packed matrices in one region of memory, norms and biases as f32 beside them.
//
// The embedding is not packed: rows are decoded from the mapped checkpoint as tokens need them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "formats/checkpoint.h"
#include "formats/layer_tensors.h"
#include "model/config.h"

namespace quire {

struct LayerWeights {
  const float* attn_norm = nullptr;
  LinearWeight q, k, v, o;
  const float* q_bias = nullptr;
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  const float* o_bias = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  const float* post_attn_norm = nullptr;
  const float* ffn_norm = nullptr;
  LinearWeight gate, up, down;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  const float* down_bias = nullptr;
  const float* post_ffn_norm = nullptr;
};

struct ModelWeights {
  const TensorRef* embedding = nullptr;
  const float* output_norm = nullptr;
  LinearWeight head;
  std::vector<LayerWeights> layers;
  Buffer memory;
  bool from_packed_file = false;
  // Sentences for people: what became of WeightOptions::packed_file.
  std::vector<std::string> notes;
};

struct WeightOptions {
  std::optional<DType> head;  // repack the output head as this type, which loses precision; none: as stored
  std::string packed_file;    // see packed_file.h; empty: none
};

// What a device packs. The tensor must outlive the source, and its order the weight.
LinearSource linear_source(const TensorRef& tensor);

// Whether the head can be repacked as asked; the error says why not.
Status check_head(const ModelConfig& config, const Checkpoint& checkpoint, std::optional<DType> head);

// Bytes that load_weights will allocate.
int64_t weight_bytes(const ModelConfig& config, const Checkpoint& checkpoint, std::optional<DType> head,
                     const DeviceSizes& sizes);

// Packs every matrix, or reads what an earlier load packed; `progress` receives the fraction done. The checkpoint has been
// validated against its Hparams, the head by check_head. A packed file that cannot be read or written is a note; a
// checkpoint whose files change meanwhile is an error.
Result<ModelWeights> load_weights(const ModelConfig& config, const Checkpoint& checkpoint, const WeightOptions& options,
                                  Device& device, const std::function<void(double)>& progress);

// The head as stored, packed into `memory`: what a repacked one is compared with.
Result<LinearWeight> pack_stored_head(const ModelConfig& config, const Checkpoint& checkpoint, Device& device,
                                      Buffer& memory);

// The types of the linears that read one kind of input, over all layers: what its LinearInput must hold.
struct LinearReaders {
  std::vector<WeightType> qkv, o, gate_up, down, head;

  std::vector<WeightType>& of(LayerInput input) {
    std::vector<WeightType>* const kinds[] = {&qkv, &o, &gate_up, &down};
    return *kinds[static_cast<size_t>(input)];
  }
};
LinearReaders linear_readers(const ModelConfig& config, const Checkpoint& checkpoint, std::optional<DType> head);

}  // namespace quire
