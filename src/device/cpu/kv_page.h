// The bytes of a KV page: how many there are, and where a token's lie among them (the order stands at AttentionRows in
// kernels.h; row_ops.inc writes in it). Pure functions on the caller's memory; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/device.h"

namespace quire::cpu {

// Values that a head takes in a page: whole vectors of 16, what is missing is 0.
inline int64_t padded_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

// K and V of one head in one page.
int64_t kv_page_bytes(KvType type, int64_t head_dim);

// Copies the first `slots` of the kPageTokens token slots of one head's page, K and V with their scales. The other slots
// of `to` keep their bits. The pages do not overlap.
void copy_kv_slots(KvType type, int64_t head_dim, int64_t slots, const std::byte* from, std::byte* to);

}  // namespace quire::cpu
