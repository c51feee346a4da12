#include "formats/quantized_linear.h"

#include <algorithm>
#include <cstring>

#include "tensor/half.h"

namespace quire {
namespace {

using Layout = QuantScheme::Layout;

// AWQ's column j of 8 lies in this nibble of their word.
constexpr int kAwqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// Field `index` of a stream of `bits`-bit fields in little-endian words; word(i) loads one. Fields may straddle words.
template <typename Word>
uint32_t field(int64_t index, int bits, Word&& word) {
  const int64_t bit = index * bits;
  const int shift = static_cast<int>(bit % 32);
  uint32_t value = word(bit / 32) >> shift;
  if (shift + bits > 32) value |= word(bit / 32 + 1) << (32 - shift);
  return value & ((1u << bits) - 1);
}

uint32_t word_at(const std::byte* words, int64_t index) { return load_u32(words + 4 * index); }

// The words of all codes of an n x k matrix.
struct Words {
  const std::byte* data;
  int64_t n;
  int64_t k;
  int bits;  // of a code
};
struct RowRange {
  int64_t first;
  int64_t count;
};
// One byte a code, `stride` bytes a row.
struct CodesOut {
  uint8_t* data;
  int64_t stride;
};

// GPTQ's qweight, whose words go down the columns of K: row by row of words, because the words of neighbouring rows of
// the matrix lie side by side.
void read_gptq(const Words& words, const RowRange& range, const CodesOut& out) {
  const int bits = words.bits;
  for (int64_t block = 0; block < words.k / 32; ++block) {
    for (int64_t r = 0; r < range.count; ++r) {
      uint32_t column[8];
      for (int w = 0; w < bits; ++w) {
        column[w] = word_at(words.data, (block * bits + w) * words.n + range.first + r);
      }
      uint8_t* to = out.data + r * out.stride + block * 32;
      for (int t = 0; t < 32; ++t) {
        to[t] = static_cast<uint8_t>(field(t, bits, [&](int64_t i) { return column[i]; }));
      }
    }
  }
}

void read_awq(const Words& words, const RowRange& range, const CodesOut& out) {
  for (int64_t column = 0; column < words.k; ++column) {
    for (int64_t r = 0; r < range.count; ++r) {
      const int64_t at = range.first + r;
      const uint32_t word = word_at(words.data, column * (words.n / 8) + at / 8);
      out.data[r * out.stride + column] = static_cast<uint8_t>(word >> (4 * kAwqNibble[at % 8]) & 15);
    }
  }
}

}  // namespace

int64_t QuantizedLinear::stored_groups() const { return (k_ + group_ - 1) / group_; }

std::string QuantizedLinear::name() const {
  std::string text = scheme_.method;
  if (scheme_.layout != Layout::kFp8) {
    text += " " + std::to_string(scheme_.bits) + "-bit";
  } else if (scheme_.method != "FP8") {
    text += " FP8";
  }
  if (scheme_.block_rows > 0) {
    text += ", blocks of " + std::to_string(scheme_.block_rows) + " x " + std::to_string(scheme_.group);
  } else if (group_ < k_) {
    text += ", groups of " + std::to_string(group_);
  } else {
    text += row_step_ == 0 ? ", one scale" : ", a scale a row";
  }
  if (type_.codes != CodeKind::kFp8) text += zeros_ == nullptr ? ", symmetric" : ", asymmetric";
  if (!order_.empty()) text += ", act-order";
  if (type_.token_scale) text += ", int8 activations";
  return text;
}

float QuantizedLinear::scale_at(int64_t row, int64_t group) const {
  const int64_t at = row / scale_rows_ * row_step_ + group * group_step_;
  float value = 0;
  dtype_info(type_.dtype).decode(scales_ + at * row_bytes(type_.dtype, 1), 1, &value);
  return value;
}

int QuantizedLinear::zero_at(int64_t row, int64_t group) const {
  const int bits = scheme_.bits;
  switch (scheme_.layout) {
    case Layout::kGptq: {
      const int64_t words = n_ * bits / 32;
      const uint32_t stored = field(row, bits, [&](int64_t i) { return word_at(zeros_, group * words + i); });
      // A zero point of 0 less one is all ones: the sum wraps within the field, as AutoGPTQ reads it.
      return static_cast<int>((stored + (scheme_.zeros_less_one ? 1 : 0)) & ((1u << bits) - 1));
    }
    case Layout::kAwq:
      return static_cast<int>(word_at(zeros_, group * (n_ / 8) + row / 8) >> (4 * kAwqNibble[row % 8]) & 15);
    case Layout::kPacked:
      return static_cast<int>(
          field(row, bits, [&](int64_t i) { return word_at(zeros_, i * stored_groups() + group); }));
    case Layout::kInt8:
    case Layout::kFp8:
      break;
  }
  return std::to_integer<int>(zeros_[row * stored_groups() + group] ^ std::byte{0x80});
}

void QuantizedLinear::read_codes(int64_t first, int64_t rows, uint8_t* out, int64_t stride) const {
  const int bits = scheme_.bits;
  const Words words = {.data = codes_, .n = n_, .k = k_, .bits = bits};
  if (scheme_.layout == Layout::kGptq) return read_gptq(words, {first, rows}, {out, stride});
  if (scheme_.layout == Layout::kAwq) return read_awq(words, {first, rows}, {out, stride});
  for (int64_t r = 0; r < rows; ++r) {
    uint8_t* to = out + r * stride;
    if (scheme_.layout == Layout::kPacked) {
      const std::byte* row = codes_ + (first + r) * ((k_ * bits + 31) / 32) * 4;
      for (int64_t i = 0; i < k_; ++i) {
        to[i] = static_cast<uint8_t>(field(i, bits, [&](int64_t word) { return word_at(row, word); }));
      }
    } else {
      std::memcpy(to, codes_ + (first + r) * k_, static_cast<size_t>(k_));
      if (scheme_.layout == Layout::kInt8) std::for_each(to, to + k_, [](uint8_t& code) { code ^= 0x80; });
    }
  }
}

void QuantizedLinear::read(int64_t first, int64_t rows, const CodeRows& out) const {
  if (order_.empty()) {
    read_codes(first, rows, out.codes, out.code_stride);
  } else {
    std::vector<uint8_t> codes(static_cast<size_t>(rows * k_));
    read_codes(first, rows, codes.data(), k_);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < k_; ++i) {
        out.codes[r * out.code_stride + i] = codes[static_cast<size_t>(r * k_ + order_[static_cast<size_t>(i)])];
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (code_offset_ != 0) {
      uint8_t* codes = out.codes + r * out.code_stride;
      std::for_each(codes, codes + k_, [&](uint8_t& code) { code = static_cast<uint8_t>(code + code_offset_); });
    }
    for (int64_t g = 0; g < out.groups; ++g) {
      const int64_t block = g * std::min<int64_t>(type_.group, k_) / group_;
      const int64_t group = group_ids_.empty() ? block : group_ids_[static_cast<size_t>(block)];
      out.scales[r * out.groups + g] = scale_at(first + r, group);
      if (type_.zeros) out.zeros[r * out.groups + g] = static_cast<uint8_t>(zero_at(first + r, group));
    }
  }
}

void QuantizedLinear::decode_f32(int64_t row, float* out) const {
  std::vector<uint8_t> codes(static_cast<size_t>(k_));
  read_codes(row, 1, codes.data(), k_);
  for (int64_t block = 0; block < stored_groups(); ++block) {
    const int64_t group = group_ids_.empty() ? block : group_ids_[static_cast<size_t>(block)];
    const float scale = scale_at(row, group);
    const int zero = zeros_ != nullptr ? zero_at(row, group) : 1 << (scheme_.bits - 1);
    for (int64_t i = block * group_; i < std::min(k_, (block + 1) * group_); ++i) {
      const int64_t column = order_.empty() ? i : order_[static_cast<size_t>(i)];
      const uint8_t code = codes[static_cast<size_t>(column)];
      out[column] = scale * (type_.codes == CodeKind::kFp8 ? e4m3_to_f32(code) : static_cast<float>(code - zero));
    }
  }
}

}  // namespace quire
