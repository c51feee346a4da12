// Llama 3's rope scaling, which config.json states in numbers and GGUF as factors that divide the frequencies
// (rope_freqs.weight). Formula: transformers' modeling_rope_utils.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/hparams.h"

namespace quire {

// One factor a pair of rotary dimensions. `rope` has llama3 scaling and an original context.
std::vector<float> llama3_factors(const RopeParams& rope, int64_t rope_dim);

// `rope` with the scaling that gives these factors: llama3, or none where all are 1. Absent: no such scaling does.
std::optional<RopeParams> rope_from_llama3_factors(const RopeParams& rope, std::span<const float> factors);

}  // namespace quire
