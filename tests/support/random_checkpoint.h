// Writes a small GGUF model whose matrices have one given type and random blocks: for tests that must see every type.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/dtype.h"

namespace quire {

// A llama of 2 layers with grouped heads and 512 features, so that every block size divides; logits stay finite.
void write_random_checkpoint(const std::string& path, DType dtype, uint64_t seed);

}  // namespace quire
