#include "formats/quantized_packing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/check.h"
#include "tensor/half.h"

namespace quire {
namespace {

using Format = CheckpointTarget::Format;

// AWQ's column j of 8 lies in this nibble of their word.
constexpr int kAwqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};
// Matrix rows whose words lie side by side are packed together, so that writes fill cache lines.
constexpr int64_t kRowsTogether = 16;

int64_t group_count(int64_t k, int64_t group) { return group == 0 ? 1 : (k + group - 1) / group; }

// A whole row of scales has no order of groups to record.
bool has_group_indices(const CheckpointTarget& target) {
  return target.format == Format::kGptq || (target.act_order && target.group > 0);
}

std::string size_text(int64_t n, int64_t k) { return std::to_string(n) + " x " + std::to_string(k); }

Status check_format(const CheckpointTarget& target, int64_t n, int64_t k) {
  if (target.bits != 4 && target.bits != 8) {
    return unsupported("cannot be written with " + std::to_string(target.bits) + " bits; 4 and 8 can");
  }
  if (n % 32 != 0 || k % 32 != 0) {
    return unsupported("has " + size_text(n, k) + " weights, and this format needs multiples of 32 in both directions");
  }
  if (target.group < 0 || target.group % 32 != 0) {
    return invalid_argument("cannot be written in groups of " + std::to_string(target.group) +
                            "; a group is a multiple of 32, or the whole row");
  }
  const bool divides = target.group == 0 || k % target.group == 0;
  if (!divides && target.format != Format::kGptq) {
    return unsupported("has rows of " + std::to_string(k) + " weights, which groups of " +
                       std::to_string(target.group) +
                       " do not divide as this format needs; take smaller groups or the GPTQ format");
  }
  if (target.format != Format::kAwq) return {};
  if (target.bits != 4) return unsupported("cannot be written with 8 bits: the AWQ format has 4");
  if (target.group == 0) {
    return unsupported(
        "cannot be written with one scale a row: readers of the AWQ format expect groups; take 32, 64 or 128");
  }
  if (target.act_order) return unsupported("cannot be written with act-order: the AWQ format has no order of columns");
  return {};
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// The word of 32 / bits fields, of which field i is value(i).
template <typename Value>
uint32_t word_of(int bits, Value&& value) {
  uint32_t word = 0;
  for (int i = 0; i < 32 / bits; ++i) word |= static_cast<uint32_t>(value(i)) << (bits * i);
  return word;
}

// Words down the columns of K, [k / per word][n].
std::vector<std::byte> pack_down(const QuantizedMatrix& m) {
  const int64_t per_word = 32 / m.bits;
  std::vector<uint32_t> words(static_cast<size_t>(m.k / per_word * m.n));
  for (int64_t first = 0; first < m.n; first += kRowsTogether) {
    for (int64_t w = 0; w < m.k / per_word; ++w) {
      for (int64_t row = first; row < std::min(first + kRowsTogether, m.n); ++row) {
        const uint8_t* codes = m.codes.data() + row * m.k + w * per_word;
        words[static_cast<size_t>(w * m.n + row)] = word_of(m.bits, [&](int i) { return codes[i]; });
      }
    }
  }
  return bytes_of(words);
}

// Words along the rows, [n][k / per word].
std::vector<std::byte> pack_along(const QuantizedMatrix& m) {
  const int64_t per_word = 32 / m.bits;
  std::vector<uint32_t> words(static_cast<size_t>(m.n * m.k / per_word));
  for (size_t w = 0; w < words.size(); ++w) {
    const uint8_t* codes = m.codes.data() + static_cast<int64_t>(w) * per_word;
    words[w] = word_of(m.bits, [&](int i) { return codes[i]; });
  }
  return bytes_of(words);
}

// AWQ's nibbles of 8 rows, [columns][n / 8]; values are [n][columns].
std::vector<std::byte> pack_awq(const std::vector<uint8_t>& values, int64_t n, int64_t columns) {
  std::vector<uint32_t> words(static_cast<size_t>(columns * (n / 8)));
  for (int64_t first = 0; first < n / 8; first += kRowsTogether) {
    for (int64_t column = 0; column < columns; ++column) {
      for (int64_t w = first; w < std::min(first + kRowsTogether, n / 8); ++w) {
        uint32_t word = 0;
        for (int64_t j = 0; j < 8; ++j) {
          word |= static_cast<uint32_t>(values[static_cast<size_t>((8 * w + j) * columns + column)])
                  << (4 * kAwqNibble[j]);
        }
        words[static_cast<size_t>(column * (n / 8) + w)] = word;
      }
    }
  }
  return bytes_of(words);
}

// Zero points packed along N: [groups][n / per word] of GPTQ, or the transposed of compressed-tensors.
std::vector<std::byte> pack_zeros(const QuantizedMatrix& m, int64_t groups, bool groups_first) {
  const int64_t per_word = 32 / m.bits;
  const int64_t row_words = m.n / per_word;
  std::vector<uint32_t> words(static_cast<size_t>(groups * row_words));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t w = 0; w < row_words; ++w) {
      const auto zero = [&](int i) { return m.zeros[static_cast<size_t>((w * per_word + i) * groups + g)]; };
      words[static_cast<size_t>(groups_first ? g * row_words + w : w * groups + g)] = word_of(m.bits, zero);
    }
  }
  return bytes_of(words);
}

std::vector<std::byte> pack_scales(const QuantizedMatrix& m, int64_t groups, bool groups_first) {
  std::vector<uint16_t> halves(m.scales.size());
  for (int64_t row = 0; row < m.n; ++row) {
    for (int64_t g = 0; g < groups; ++g) {
      halves[static_cast<size_t>(groups_first ? g * m.n + row : row * groups + g)] =
          f32_to_f16(m.scales[static_cast<size_t>(row * groups + g)]);
    }
  }
  return bytes_of(halves);
}

std::vector<std::byte> pack_group_indices(const QuantizedMatrix& m) {
  if (!m.group_of.empty()) return bytes_of(m.group_of);
  std::vector<int32_t> indices(static_cast<size_t>(m.k));
  for (int64_t i = 0; i < m.k; ++i) indices[static_cast<size_t>(i)] = static_cast<int32_t>(i / m.group);
  return bytes_of(indices);
}

// Whether every column has a group, and each group as many columns as it is to have.
bool groups_are_full(const QuantizedMatrix& m, int64_t groups) {
  std::vector<int64_t> room(static_cast<size_t>(groups), m.group);
  room.back() = m.k - (groups - 1) * m.group;
  return std::ranges::all_of(m.group_of, [&](int32_t group) {
    return group >= 0 && group < groups && room[static_cast<size_t>(group)]-- > 0;
  });
}

}  // namespace

Result<std::vector<PackedPart>> packed_parts(const CheckpointTarget& target, int64_t n, int64_t k) {
  QUIRE_RETURN_IF_ERROR(check_format(target, n, k));
  const int64_t per_word = 32 / target.bits;
  const int64_t groups = group_count(k, target.group);
  std::vector<PackedPart> parts;
  if (target.format == Format::kCompressedTensors) {
    parts = {{"weight_packed", "I32", {n, k / per_word}},
             {"weight_scale", "F16", {n, groups}},
             {"weight_shape", "I64", {2}}};
    if (!target.symmetric) parts.push_back({"weight_zero_point", "I32", {n / per_word, groups}});
    if (has_group_indices(target)) parts.push_back({"weight_g_idx", "I32", {k}});
    return parts;
  }
  const bool awq = target.format == Format::kAwq;
  parts.push_back(
      {"qweight", "I32", awq ? std::vector<int64_t>{k, n / per_word} : std::vector<int64_t>{k / per_word, n}});
  parts.push_back({"qzeros", "I32", {groups, n / per_word}});
  parts.push_back({"scales", "F16", {groups, n}});
  if (has_group_indices(target)) parts.push_back({"g_idx", "I32", {k}});
  return parts;
}

Status check_matrix(const CheckpointTarget& target, const QuantizedMatrix& m) {
  const int64_t groups = group_count(m.k, target.group);
  const auto cells = static_cast<size_t>(m.n * groups);
  const bool sizes = m.bits == target.bits && m.codes.size() == static_cast<size_t>(m.n * m.k) &&
                     m.group == (target.group == 0 ? m.k : target.group) && m.scales.size() == cells &&
                     m.zeros.size() == cells &&
                     (m.group_of.empty() || (target.act_order && m.group_of.size() == static_cast<size_t>(m.k)));
  if (!sizes) return corrupt("has other sizes, bits or groups than were asked for");
  const int largest = (1 << m.bits) - 1, middle = 1 << (m.bits - 1);
  const auto zero_fits = [&](uint8_t zero) { return target.symmetric ? zero == middle : zero <= largest; };
  if (!std::ranges::all_of(m.codes, [&](uint8_t code) { return code <= largest; }) ||
      !std::ranges::all_of(m.zeros, zero_fits) || !groups_are_full(m, groups)) {
    return corrupt("has a code, a zero point or a group outside its range");
  }
  for (const float scale : m.scales) {
    const float stored = f16_to_f32(f32_to_f16(scale));
    if (!std::isfinite(stored) || stored != scale) {
      return out_of_range("has a scale of " + std::to_string(scale) + ", which F16 cannot hold");
    }
    if (stored == 0) return corrupt("has a scale of 0");
  }
  return {};
}

std::vector<std::byte> pack_part(const CheckpointTarget& target, std::string_view part, const QuantizedMatrix& m) {
  const int64_t groups = group_count(m.k, target.group);
  const bool awq = target.format == Format::kAwq;
  if (part == "qweight") return awq ? pack_awq(m.codes, m.n, m.k) : pack_down(m);
  if (part == "qzeros") return awq ? pack_awq(m.zeros, m.n, groups) : pack_zeros(m, groups, true);
  if (part == "scales") return pack_scales(m, groups, true);
  if (part == "weight_packed") return pack_along(m);
  if (part == "weight_scale") return pack_scales(m, groups, false);
  if (part == "weight_shape") return bytes_of(std::vector<int64_t>{m.n, m.k});
  if (part == "weight_zero_point") return pack_zeros(m, groups, false);
  QUIRE_CHECK(part == "g_idx" || part == "weight_g_idx");
  return pack_group_indices(m);
}

}  // namespace quire
