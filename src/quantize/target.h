// What the user asks `quire quantize` for, made into a target that a file format can hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/checkpoint_writer.h"
#include "quantize/quantizer.h"

namespace quire {

struct QuantizeRequest {
  QuantizeScheme scheme = QuantizeScheme::kGptq;
  std::optional<CheckpointTarget::Format> format;  // none: GGUF where the name ends so, else the scheme's own
  std::optional<DType> type;     // of a GGUF file's linears; none: the one that bits and symmetry suggest
  int bits = 4;                  // 4, 8, or 16: plain bf16
  std::optional<int64_t> group;  // 0: the whole row; none: the largest of 128, 64 and 32 that fits
  bool symmetric = true;
  GptqOptions gptq;
  std::optional<bool> importance;  // RTN's; none: with GGUF
};

// How a model is quantized and written.
struct QuantizeTarget {
  CheckpointTarget file;
  QuantizeOptions options;
  bool plain = false;       // 16 bits: nothing is quantized
  std::string description;  // for people: "GPTQ 4-bit, groups of 64, symmetric, as gptq_v2 safetensors"
};

// Fails with what the format cannot hold and what can; names the tensor at fault.
Result<QuantizeTarget> quantize_target(const Checkpoint& checkpoint, const QuantizeRequest& request,
                                       const std::string& out);

const char* scheme_name(QuantizeScheme scheme);  // "gptq"

}  // namespace quire
