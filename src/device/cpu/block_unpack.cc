#include "device/cpu/block_unpack.h"

#include <cstring>

#include "base/check.h"

namespace quire::cpu {
namespace {

using Byte = uint8_t;

uint16_t load16(const Byte* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

uint32_t load32(const Byte* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The non-linear codebook of the IQ4 types, offset to unsigned: value + 128.
constexpr Byte kIq4Codes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
// Twice the E2M1 values of MXFP4, offset to unsigned: the positive half, then its negation.
constexpr Byte kMxfp4Codes[16] = {128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122, 120, 116};

void nibbles32(const Byte* qs, Byte* q) {
  for (int i = 0; i < 16; ++i) q[i] = qs[i] & 15;
  for (int i = 0; i < 16; ++i) q[16 + i] = qs[i] >> 4;
}

void add_fifth_bits(uint32_t bits, Byte* q) {
  for (int i = 0; i < 32; ++i) q[i] = static_cast<Byte>(q[i] | (bits >> i & 1) << 4);
}

void unpack_legacy4(const Byte* block, int64_t blocks, bool mins, const UnpackedRow& row) {
  const int header = mins ? 4 : 2;
  for (int64_t b = 0; b < blocks; ++b, block += header + 16) {
    row.scale16[b] = load16(block);
    if (mins) row.min16[b] = load16(block + 2);
    nibbles32(block + header, row.q + 32 * b);
  }
}

void unpack_legacy5(const Byte* block, int64_t blocks, bool mins, const UnpackedRow& row) {
  const int header = mins ? 4 : 2;
  for (int64_t b = 0; b < blocks; ++b, block += header + 20) {
    row.scale16[b] = load16(block);
    if (mins) row.min16[b] = load16(block + 2);
    nibbles32(block + header + 4, row.q + 32 * b);
    add_fifth_bits(load32(block + header), row.q + 32 * b);
  }
}

void unpack_q8_0(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 34) {
    row.scale16[b] = load16(block);
    for (int i = 0; i < 32; ++i) row.q[32 * b + i] = block[2 + i] ^ 0x80;
  }
}

void unpack_iq4_nl(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 18) {
    row.scale16[b] = load16(block);
    Byte* q = row.q + 32 * b;
    nibbles32(block + 2, q);
    for (int i = 0; i < 32; ++i) q[i] = kIq4Codes[q[i]];
  }
}

// bf16 bits of 2^(e - 128), half the shared scale; the codes are doubled.
uint16_t halved_e8m0(Byte e) {
  if (e >= 2) return static_cast<uint16_t>((e - 1) << 7);
  return static_cast<uint16_t>(e == 1 ? 0x40 : 0x20);  // 2^-127 and 2^-128 are subnormal
}

void unpack_mxfp4(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 17) {
    row.scale16[b] = halved_e8m0(block[0]);
    Byte* q = row.q + 32 * b;
    nibbles32(block + 1, q);
    for (int i = 0; i < 32; ++i) q[i] = kMxfp4Codes[q[i]];
  }
}

// The 2-bit fields of Q2_K and Q3_K: value i of a 256-block sits in byte 32 (i / 128) + i % 32.
void crumbs256(const Byte* qs, Byte* q) {
  for (int half = 0; half < 2; ++half) {
    for (int shift = 0; shift < 4; ++shift) {
      for (int i = 0; i < 32; ++i) q[128 * half + 32 * shift + i] = qs[32 * half + i] >> (2 * shift) & 3;
    }
  }
}

void unpack_q2_k(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 84) {
    for (int j = 0; j < 16; ++j) {
      row.scale8[16 * b + j] = block[j] & 15;
      row.min8[16 * b + j] = block[j] >> 4;
    }
    crumbs256(block + 16, row.q + 256 * b);
    row.super_scale[b] = load16(block + 80);
    row.super_min[b] = load16(block + 82);
  }
}

void unpack_q3_k(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 110) {
    Byte* q = row.q + 256 * b;
    crumbs256(block + 32, q);
    for (int i = 0; i < 256; ++i) q[i] = static_cast<Byte>(q[i] | (block[i % 32] >> (i / 32) & 1) << 2);
    const Byte* s = block + 96;
    for (int j = 0; j < 16; ++j) {
      const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
      const int high = s[8 + j % 4] >> (2 * (j / 4)) & 3;
      row.scale8[16 * b + j] = static_cast<Byte>((low | high << 4) - 32);
    }
    row.super_scale[b] = load16(block + 108);
  }
}

// The eight 6-bit (scale, min) pairs that Q4_K and Q5_K keep in 12 bytes.
void k_scales(const Byte* s, Byte* scale, Byte* min) {
  for (int j = 0; j < 4; ++j) {
    scale[j] = s[j] & 63;
    min[j] = s[j + 4] & 63;
    scale[j + 4] = static_cast<Byte>((s[j + 8] & 15) | (s[j] >> 6) << 4);
    min[j + 4] = static_cast<Byte>((s[j + 8] >> 4) | (s[j + 4] >> 6) << 4);
  }
}

void unpack_q4_k(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 144) {
    row.super_scale[b] = load16(block);
    row.super_min[b] = load16(block + 2);
    k_scales(block + 4, row.scale8 + 8 * b, row.min8 + 8 * b);
    for (int j = 0; j < 4; ++j) {
      const Byte* qs = block + 16 + 32 * j;
      Byte* q = row.q + 256 * b + 64 * j;
      for (int i = 0; i < 32; ++i) q[i] = qs[i] & 15;
      for (int i = 0; i < 32; ++i) q[32 + i] = qs[i] >> 4;
    }
  }
}

void unpack_q5_k(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 176) {
    row.super_scale[b] = load16(block);
    row.super_min[b] = load16(block + 2);
    k_scales(block + 4, row.scale8 + 8 * b, row.min8 + 8 * b);
    const Byte* high = block + 16;
    for (int j = 0; j < 8; ++j) {
      const Byte* qs = block + 48 + 32 * (j / 2);
      Byte* q = row.q + 256 * b + 32 * j;
      const int shift = 4 * (j % 2);
      for (int i = 0; i < 32; ++i) q[i] = static_cast<Byte>((qs[i] >> shift & 15) | (high[i] >> j & 1) << 4);
    }
  }
}

void unpack_q6_k(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 210) {
    for (int j = 0; j < 8; ++j) {
      const Byte* low = block + 64 * (j / 4) + 32 * (j % 2);
      const Byte* high = block + 128 + 32 * (j / 4);
      const int low_shift = 4 * (j % 4 / 2);
      const int high_shift = 2 * (j % 4);
      Byte* q = row.q + 256 * b + 32 * j;
      for (int i = 0; i < 32; ++i)
        q[i] = static_cast<Byte>((low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4);
    }
    std::memcpy(row.scale8 + 16 * b, block + 192, 16);
    row.super_scale[b] = load16(block + 208);
  }
}

void unpack_iq4_xs(const Byte* block, int64_t blocks, const UnpackedRow& row) {
  for (int64_t b = 0; b < blocks; ++b, block += 136) {
    row.super_scale[b] = load16(block);
    const unsigned scales_high = load16(block + 2);
    for (int j = 0; j < 8; ++j) {
      const int scale = (block[4 + j / 2] >> (4 * (j % 2)) & 15) | static_cast<int>(scales_high >> (2 * j) & 3) << 4;
      row.scale8[8 * b + j] = static_cast<Byte>(scale - 32);
      Byte* q = row.q + 256 * b + 32 * j;
      nibbles32(block + 8 + 16 * j, q);
      for (int i = 0; i < 32; ++i) q[i] = kIq4Codes[q[i]];
    }
  }
}

}  // namespace

void unpack_row(DType dtype, const std::byte* blocks, int64_t k, const UnpackedRow& row) {
  const Byte* p = reinterpret_cast<const Byte*>(blocks);
  const int64_t n = k / dtype_info(dtype).block_elements;
  switch (dtype) {
    case DType::kQ4_0:
      return unpack_legacy4(p, n, false, row);
    case DType::kQ4_1:
      return unpack_legacy4(p, n, true, row);
    case DType::kQ5_0:
      return unpack_legacy5(p, n, false, row);
    case DType::kQ5_1:
      return unpack_legacy5(p, n, true, row);
    case DType::kQ8_0:
      return unpack_q8_0(p, n, row);
    case DType::kQ2_K:
      return unpack_q2_k(p, n, row);
    case DType::kQ3_K:
      return unpack_q3_k(p, n, row);
    case DType::kQ4_K:
      return unpack_q4_k(p, n, row);
    case DType::kQ5_K:
      return unpack_q5_k(p, n, row);
    case DType::kQ6_K:
      return unpack_q6_k(p, n, row);
    case DType::kIQ4_NL:
      return unpack_iq4_nl(p, n, row);
    case DType::kIQ4_XS:
      return unpack_iq4_xs(p, n, row);
    case DType::kMXFP4:
      return unpack_mxfp4(p, n, row);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  QUIRE_CHECK(false);
}

}  // namespace quire::cpu
