// What decides how a model is loaded and run, apart from which one it is. Defaults live in base/options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/dtype.h"

namespace quire {

enum class ComputeMode {
  kDefault,  // int8 or bf16 activations as the weights suggest, bf16 KV
  kF32,      // f32 activations and f32 KV: for exactness, not for speed
};
// What flash attention is measured against (device/device.h, AttentionMethod).
enum class Attention { kFlash, kPerHead, kFullScores };
enum class Isa { kAuto, kScalar, kAvx2, kAvx512 };

struct ModelOptions {
  std::string model_path;  // a .gguf file or a checkpoint directory
  ComputeMode compute = ComputeMode::kDefault;
  Isa isa = Isa::kAuto;
  int threads = 0;            // 0: the cores this process may use
  bool adapt_threads = true;  // use fewer while other programs take cores
  Attention attention = Attention::kFlash;
  bool power_of_two_scales = false;  // of int8 activations
  std::optional<DType> head;         // repack the output head as this type; none: as stored
  std::string pack_cache;            // folder that packed weights are kept in; empty: none are
  int64_t context = 0;               // tokens; 0: the trained context, or less where memory is short
};

}  // namespace quire
