#include "eval/divergence.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace quire {
namespace {

constexpr int kLanes = 16;
constexpr int64_t kBlock = 512;  // terms that one f32 sum takes, 32 a lane

// exp(x) for x <= 0, to 2 units in the last place: Cody and Waite's reduction by multiples of ln 2, then a polynomial of
// degree 7 (the Taylor series, whose remainder is below 2^-27 over half of ln 2). Below -87 it is exp(-87), 1e-38.
inline float exp_below_zero(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  x = x < -87.0f ? -87.0f : x;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // The low bits of `shifted` are n: they go to the exponent.
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
}

double add_lanes(const float (&lanes)[kLanes]) {
  double sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

float largest(const float* x, int64_t n) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, x[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  }
  for (; i < n; ++i) lanes[0] = x[i] > lanes[0] ? x[i] : lanes[0];
  return *std::max_element(lanes, lanes + kLanes);
}

// The sum of term(i) over [0, n), in blocks.
template <typename Term>
double block_sum(int64_t n, Term term) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    float lanes[kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += term(i + l);
    }
    for (int l = 0; i + l < end; ++l) lanes[l] += term(i + l);
    total += add_lanes(lanes);
  }
  return total;
}

}  // namespace

RowSummary summarize_row(const float* logits, int64_t n, float* weights) {
  const float peak = largest(logits, n);
  RowSummary summary;
  const float* top = std::find(logits, logits + n, peak);
  summary.top = top == logits + n ? 0 : static_cast<int32_t>(top - logits);  // not found: the peak is NaN
  double sum = 0;
  if (weights != nullptr) {
    for (int64_t i = 0; i < n; ++i) weights[i] = exp_below_zero(logits[i] - peak);
    sum = block_sum(n, [&](int64_t i) { return weights[i]; });
  } else {
    sum = block_sum(n, [&](int64_t i) { return exp_below_zero(logits[i] - peak); });
  }
  summary.log_sum = double{peak} + std::log(sum);
  return summary;
}

RowDivergence diverge(const float* p, const float* p_weights, const RowSummary& p_summary, const float* q,
                      const RowSummary& q_summary, int64_t n) {
  // sum(P (log P - log Q)), where log P = p - log_sum(p), and the weights are P times exp(log_sum(p) - largest p).
  const double weighted = block_sum(n, [&](int64_t i) { return p_weights[i] * (p[i] - q[i]); });
  const double scale = std::exp(double{p[p_summary.top]} - p_summary.log_sum);
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float difference = std::fabs(p[i + l] - q[i + l]);
      lanes[l] = difference > lanes[l] ? difference : lanes[l];
    }
  }
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], std::fabs(p[i] - q[i]));
  return {.kl = weighted * scale + (q_summary.log_sum - p_summary.log_sum),
          .logit_max = *std::max_element(lanes, lanes + kLanes)};
}

}  // namespace quire
