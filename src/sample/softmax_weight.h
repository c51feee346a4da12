// Softmax terms as integers. Sums of integers are exact, so a cumulative probability does not depend on the order in
// which a selection algorithm visits the vocabulary, nor on the vector width the compiler chose.
#pragma once

#include <bit>
#include <cstdint>

namespace quire {

// The weight of the most likely token. A row of up to 2^20 tokens sums below 2^64.
inline constexpr uint64_t kUnitWeight = uint64_t{1} << 44;

// kUnitWeight * exp(x), rounded, for x <= 0; NaN and -inf weigh nothing, as does x below about -31.2.
// Branch-free arithmetic of our own: it vectorises, and no C library's exp can change a draw. Relative error of the
// exponential < 1e-13 (Taylor series to the 11th degree on [-ln2/2, ln2/2]).
inline uint64_t softmax_weight(double x) {
  constexpr double kRoundToInteger = 0x1.8p52;  // adding it leaves the integer nearest to the sum in the low bits
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  x = -40.0 < x ? x : -40.0;
  const double shifted = x * kLog2E + kRoundToInteger;
  const double r = (x * kLog2E - (shifted - kRoundToInteger)) * kLn2;
  double series = 1.0 / 39916800;
  series = series * r + 1.0 / 3628800;
  series = series * r + 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 1.0 / 2;
  series = series * r + 1.0;
  series = series * r + 1.0;
  const uint64_t exponent = std::bit_cast<uint64_t>(shifted) - std::bit_cast<uint64_t>(kRoundToInteger);
  const double scale = std::bit_cast<double>((exponent + 1023 + 44) << 52);
  return std::bit_cast<uint64_t>(series * scale + 0x1p52) & ((uint64_t{1} << 52) - 1);
}

}  // namespace quire
