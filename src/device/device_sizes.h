// What a device would take and is called, without the device: sizes, layouts and names, for whoever plans memory or
// describes a model. A Device answers from the same object (Device::sizes). It starts no thread and allocates no memory
// of a model. Immutable: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensor/weight_type.h"

namespace quire {

// Tokens of one page of the KV cache: a constant of its layout, chosen with the attention kernels.
inline constexpr int64_t kPageTokens = 16;

// The widest head that attention takes.
inline constexpr int64_t kMaxHeadDim = 512;

struct HeadShape {
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};

struct ActivationShape {
  int64_t max_rows = 0;
  int64_t k = 0;
  std::span<const WeightType> readers;  // weights that will be multiplied with them
  bool keep_values = false;             // in f32 too, for whoever observes them
};

class DeviceSizes {
 public:
  virtual ~DeviceSizes() = default;

  virtual std::string description() const = 0;  // "avx512, int8 activations, bf16 KV, 2 threads"
  virtual std::string_view layout() const = 0;  // of packed weights; another name after every change
  // What multiplies weights of this type: "avx512 int4 x int8".
  virtual std::string kernel_name(const WeightType& type) const = 0;

  // Bytes of a packed matrix [n, k].
  virtual int64_t packed_bytes(const WeightType& type, int64_t n, int64_t k) const = 0;
  virtual int64_t activation_bytes(const ActivationShape& shape) const = 0;
  virtual int64_t kv_head_bytes(int64_t head_dim) const = 0;  // K and V of one head in one page
  // Of f32, for steps whose sequences have at most `context` tokens.
  virtual int64_t attention_scratch_floats(const HeadShape& shape, int64_t context) const = 0;
};

}  // namespace quire
