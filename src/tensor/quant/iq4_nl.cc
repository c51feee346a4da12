#include "tensor/quant/iq4_nl.h"

#include "tensor/half.h"

namespace quire {

void decode_iq4_nl(const std::byte* blocks, int64_t n_blocks, float* out) {
  const auto* block = reinterpret_cast<const BlockIQ4_NL*>(blocks);
  for (int64_t b = 0; b < n_blocks; ++b, ++block, out += 32) {
    const float d = load_f16(block->d);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(kIQ4NLValues[block->qs[i] & 15]);
      out[i + 16] = d * static_cast<float>(kIQ4NLValues[block->qs[i] >> 4]);
    }
  }
}

}  // namespace quire
