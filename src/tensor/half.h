// Conversions between f32 and the two 16-bit float types, bit-exact on every machine: subnormals are kept and
// rounding is to nearest, ties to even. Formats: IEEE 754 binary16, and bfloat16 as the upper half of binary32.
//
// Any bits are valid input. A NaN stays a NaN (made quiet); a value too large for f16 becomes infinity.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace quire {

// Files and registers are little-endian; loads below copy bytes as they are.
static_assert(std::endian::native == std::endian::little, "quire needs a little-endian machine");

inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN
    const uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13 | quiet);
  }
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: an integer multiple of 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and above
  if (magnitude >= 0x38800000u) {                                              // normal in f16: 2^-14 and above
    const uint32_t rebased = magnitude - (112u << 23);
    // A carry out of the mantissa runs into the exponent, and out of the exponent into infinity: both are right.
    return static_cast<uint16_t>(sign | ((rebased + 0x0fffu + (rebased >> 13 & 1u)) >> 13));
  }
  // Subnormal in f16. Adding 0.5 puts the unit of the last place at 2^-24, so the addition itself rounds.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
}

inline float bf16_to_f32(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Loads from bytes of any alignment.
inline uint16_t load_u16(const void* bytes) {
  uint16_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
inline uint32_t load_u32(const void* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
inline float load_f16(const void* bytes) { return f16_to_f32(load_u16(bytes)); }
inline void store_u16(void* bytes, uint16_t value) { std::memcpy(bytes, &value, sizeof value); }

}  // namespace quire
