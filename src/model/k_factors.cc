#include "model/k_factors.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

constexpr double kKExponent = 0.75;
constexpr double kQExponent = 0.25;
// Channels that the text left quiet count as so much of the head's median: another text may wake them.
constexpr double kQuiet = 0.1;
// Factors beyond could bring K or Q near the limits of f32.
constexpr float kLargestFactor = 1e6f;

int64_t kv_width(const ModelConfig& config) { return config.heads.kv_heads * config.heads.head_dim; }
int64_t q_width(const ModelConfig& config) { return config.heads.heads * config.heads.head_dim; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Raises quiet magnitudes; all become 1 where most are 0.
void raise_quiet(std::vector<double>& magnitudes) {
  const double least = kQuiet * median(magnitudes);
  for (double& m : magnitudes) m = least > 0 ? std::max(m, least) : 1.0;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

std::string head_name(const ModelConfig& config, int64_t head) {
  return "layer " + std::to_string(head / config.heads.kv_heads) + ", KV head " +
         std::to_string(head % config.heads.kv_heads);
}

}  // namespace

KvObservations::KvObservations(const ModelConfig& config)
    : k_largest_square(config.layers.size() * static_cast<size_t>(kv_width(config))),
      q_sum_of_squares(config.layers.size() * static_cast<size_t>(q_width(config))) {}

QkvStatistics KvObservations::layer(const ModelConfig& config, size_t index) {
  const auto at = static_cast<int64_t>(index);
  return {.k_largest_square = k_largest_square.data() + at * kv_width(config),
          .q_sum_of_squares = q_sum_of_squares.data() + at * q_width(config)};
}

Result<std::vector<float>> choose_k_factors(const ModelConfig& config, const KvObservations& seen) {
  const auto dim = static_cast<size_t>(config.heads.head_dim);
  const auto group = static_cast<size_t>(config.heads.heads / config.heads.kv_heads);  // heads of Q that share one of K
  std::vector<float> factors;
  factors.reserve(seen.k_largest_square.size());
  for (size_t head = 0; head * dim < seen.k_largest_square.size(); ++head) {
    std::vector<double> k(dim);
    std::vector<double> q(dim);
    for (size_t d = 0; d < dim; ++d) {
      k[d] = std::sqrt(double{seen.k_largest_square[head * dim + d]});
      for (size_t h = head * group; h < (head + 1) * group; ++h) q[d] += seen.q_sum_of_squares[h * dim + d];
      q[d] = std::sqrt(q[d]);
    }
    if (!all_finite(k) || !all_finite(q)) {
      return corrupt("K or Q of " + head_name(config, static_cast<int64_t>(head)) +
                     " is not finite on the calibration text: the weights are damaged, or too large for this program");
    }
    raise_quiet(k);
    raise_quiet(q);
    double mean = 0;
    for (size_t d = 0; d < dim; ++d) mean += kKExponent * std::log(k[d]) - kQExponent * std::log(q[d]);
    mean /= static_cast<double>(dim);
    for (size_t d = 0; d < dim; ++d) {
      const double factor = std::exp(kKExponent * std::log(k[d]) - kQExponent * std::log(q[d]) - mean);
      factors.push_back(std::clamp(static_cast<float>(factor), 1 / kLargestFactor, kLargestFactor));
    }
  }
  return factors;
}

Status check_k_factors(const ModelConfig& config, std::span<const float> factors, const std::string& where) {
  const size_t wanted = config.layers.size() * static_cast<size_t>(kv_width(config));
  if (factors.size() != wanted) {
    return corrupt(where + ": " + std::to_string(factors.size()) + " K factors, but " +
                   std::to_string(config.layers.size()) + " layers of " + std::to_string(config.heads.kv_heads) +
                   " KV heads with " + std::to_string(config.heads.head_dim) + " channels need " +
                   std::to_string(wanted) + ": quantize the model again, or use another --kv-dtype");
  }
  const int64_t half = config.rope_dim / 2;
  for (size_t i = 0; i < factors.size(); ++i) {
    const auto head = static_cast<int64_t>(i) / config.heads.head_dim;
    const auto channel = static_cast<int64_t>(i) % config.heads.head_dim;
    const bool in_range = factors[i] >= 1 / kLargestFactor && factors[i] <= kLargestFactor;
    if (in_range && (channel >= half || factors[i] == factors[i + static_cast<size_t>(half)])) continue;
    return corrupt(where + ": the K factor of " + head_name(config, head) + ", channel " + std::to_string(channel) +
                   (in_range ? " differs from that of the channel it is rotated with"
                             : " is " + std::to_string(factors[i]) + ", not between 1e-6 and 1e6") +
                   ": quantize the model again, or use another --kv-dtype");
  }
  return {};
}

}  // namespace quire
