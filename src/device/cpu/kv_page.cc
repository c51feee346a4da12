#include "device/cpu/kv_page.h"

#include <cstring>

#include "base/check.h"
#include "device/cpu/kernels.h"

namespace quire::cpu {
namespace {

static_assert(quire::kPageTokens == cpu::kPageTokens, "pages of the device and of its kernels");
static_assert(quire::kMaxHeadDim == cpu::kMaxHeadDim, "heads of the device and of its kernels");

constexpr int64_t kTokens = quire::kPageTokens;
constexpr int64_t kScaleBytes = sizeof(float);

int64_t value_bytes(KvType type) {
  switch (type) {
    case KvType::kI8:
      return 1;
    case KvType::kBF16:
    case KvType::kF16:
      return 2;
    case KvType::kF32:
      return 4;
  }
  QUIRE_CHECK(false);
}

// Whether values lie in pairs: of channels in K, of tokens in V.
bool in_pairs(KvType type) { return type == KvType::kBF16 || type == KvType::kI8; }

void copy(const std::byte* from, std::byte* to, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }

// K: runs of one value, or one pair of channels, a token.
void copy_keys(int64_t runs, int64_t run_bytes, int64_t slots, const std::byte* from, std::byte* to) {
  for (int64_t run = 0; run < runs; ++run) {
    const int64_t at = run * kTokens * run_bytes;
    copy(from + at, to + at, slots * run_bytes);
  }
}

// V where tokens lie in pairs: the last token of an odd number leaves its neighbour alone.
void copy_value_pairs(int64_t dim, int64_t bytes, int64_t slots, const std::byte* from, std::byte* to) {
  const int64_t whole = slots / 2 * 2 * dim * bytes;
  copy(from, to, whole);
  if (slots % 2 == 0) return;
  for (int64_t d = 0; d < dim; ++d) {
    const int64_t at = whole + 2 * d * bytes;
    copy(from + at, to + at, bytes);
  }
}

}  // namespace

int64_t kv_page_bytes(KvType type, int64_t head_dim) {
  const int64_t scales = type == KvType::kI8 ? kTokens * kScaleBytes : 0;
  return 2 * (kTokens * padded_dim(head_dim) * value_bytes(type) + scales);
}

void copy_kv_slots(KvType type, int64_t head_dim, int64_t slots, const std::byte* from, std::byte* to) {
  QUIRE_CHECK(slots >= 0 && slots <= kTokens);
  const int64_t dim = padded_dim(head_dim);
  const int64_t bytes = value_bytes(type);
  const int64_t half = kv_page_bytes(type, head_dim) / 2;  // K; V follows
  if (in_pairs(type)) {
    copy_keys(dim / 2, 2 * bytes, slots, from, to);
    copy_value_pairs(dim, bytes, slots, from + half, to + half);
  } else {
    copy_keys(dim, bytes, slots, from, to);
    copy(from + half, to + half, slots * dim * bytes);
  }
  if (type != KvType::kI8) return;
  const int64_t scales = kTokens * dim * bytes;  // behind the codes
  for (const int64_t at : {scales, half + scales}) copy(from + at, to + at, slots * kScaleBytes);
}

}  // namespace quire::cpu
