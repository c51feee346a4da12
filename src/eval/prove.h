// Proves what quantization cost: compares a quantized model with its original, and keeps the result in its file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "capacity/model_options.h"
#include "eval/proof.h"

namespace quire {

struct ProveRequest {
  ModelOptions options;                  // of the quantized model; both run with f32 activations and KV
  std::string original;                  // path of what it was made from
  int64_t tokens = 0;                    // of the shipped evaluation text, and
  std::string text_sha256;               // its hash, to be recorded
  std::function<bool(double)> progress;  // hears the fraction done; false stops with kCancelled
};

// Stores the proof, and the model's factors of K for int8 KV with it. kResourceExhausted: memory does not hold both models.
Result<Proof> prove_quantization(const ProveRequest& request);

}  // namespace quire
