// The buffers of a step, laid out once for the largest step in one region of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "model/config.h"
#include "model/weights.h"

namespace quire {

struct WorkspaceLimits {
  int64_t max_rows = 512;    // rows of a step
  int64_t max_context = 0;   // tokens of a sequence
  bool keep_inputs = false;  // of linears, in f32 (LinearInput::values)
};

// Rows of logits that exist at a time when a text is scored: enough to keep the head's kernels busy.
inline constexpr int64_t kScoreRows = 24;

// Of so many rows of logits.
inline int64_t logits_bytes(int64_t vocab_size, int64_t rows) {
  return vocab_size * rows * static_cast<int64_t>(sizeof(float));
}

struct Workspace {
  static int64_t bytes(const ModelConfig& config, const LinearReaders& readers, const WorkspaceLimits& limits,
                       const DeviceSizes& sizes);
  static Result<Workspace> create(const ModelConfig& config, const LinearReaders& readers,
                                  const WorkspaceLimits& limits, Device& device);

  WorkspaceLimits limits;
  float* x = nullptr;        // [rows][hidden], the residual stream
  float* q = nullptr;        // [rows][heads head_dim]
  float* partial = nullptr;  // [rows][hidden], where outputs have norms
  float* attention_scratch = nullptr;
  std::vector<float*> rope_cos, rope_sin;  // per rope, [rows][rope_dim / 2]
  std::unique_ptr<LinearInput> attn_in, attn_out, ffn_in, ffn_mid, head_in;
  Buffer memory;
};

}  // namespace quire
