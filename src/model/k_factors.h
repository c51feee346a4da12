// Factors per channel of K for int8 pages: K is divided by them before it is stored, and Q multiplied (device/device.h,
// QkvArgs). One scale serves all channels of a head, so a channel that dwarfs the others takes their precision away.
//
// A channel's factor is K^0.75 Q^-0.25, of the largest magnitude K and the root mean square Q of its rope pair over a
// text. Errors of a score add up to s^2 sum(Q_d^2 f_d^2), where s, the scale, is the largest K_d / f_d of the token. That is
// least for f = K if every channel reaches its largest in every token. Tokens differ, though: with s as a p-norm of the
// K_d / f_d instead it is least for f^(p + 2) = K^p / Q^2, and p = 6 served best (docs/performance.md, "KV types").
// Pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"

namespace quire {

// Squares as QkvStatistics has them, of all layers, from zero on.
struct KvObservations {
  explicit KvObservations(const ModelConfig& config);

  QkvStatistics layer(const ModelConfig& config, size_t index);

  std::vector<float> k_largest_square;   // [layers][kv_heads][head_dim]
  std::vector<double> q_sum_of_squares;  // [layers][heads][head_dim]
};

// [layers][kv_heads][head_dim], both values of a rope pair alike, of geometric mean 1 in each head. Fails where K or Q was
// not finite.
Result<std::vector<float>> choose_k_factors(const ModelConfig& config, const KvObservations& seen);

// Fails, saying which, unless these are factors for such a model. `where` names their source.
Status check_k_factors(const ModelConfig& config, std::span<const float> factors, const std::string& where);

}  // namespace quire
