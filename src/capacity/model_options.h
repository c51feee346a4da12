// What decides how a model is loaded and run, apart from which one it is. Defaults live in options/options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/dtype.h"

namespace quire {

enum class ComputeMode {
  kDefault,  // int8 or bf16 activations as the weights suggest
  kF32,      // f32 activations: for exactness, not for speed
};
// What the KV cache holds (device/device.h, KvType).
enum class KvDtype { kAuto, kBf16, kF16, kInt8, kF32 };
// What flash attention is measured against (device/device.h, AttentionMethod).
enum class Attention { kFlash, kPerHead, kFullScores };
enum class Isa { kAuto, kScalar, kAvx2, kAvx512 };

struct ModelOptions {
  std::string model_path;  // a .gguf file or a checkpoint directory
  ComputeMode compute = ComputeMode::kDefault;
  KvDtype kv_dtype = KvDtype::kAuto;  // bf16, or f32 with f32 activations
  bool k_factors = true;              // of int8 KV (model/k_factors.h)
  Isa isa = Isa::kAuto;
  int threads = 0;            // 0: the cores this process may use
  bool adapt_threads = true;  // use fewer while other programs take cores
  Attention attention = Attention::kFlash;
  bool power_of_two_scales = false;  // of int8 activations
  std::optional<DType> head;         // repack the output head as this type; none: as stored
  std::string pack_cache;            // folder that packed weights are kept in; empty: none are
  int64_t context = 0;               // tokens; 0: the trained context, or less where memory is short
  std::string record;                // file that the steps are written to (engine/recording.h); empty: none
};

}  // namespace quire
