// Quantizing a linear column by column, each column's error made up for by those that follow (GPTQ, Frantar et al. 2022,
// arXiv 2210.17323), and plainly, each weight to the nearest code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "quantize/grid.h"

namespace quire {

// Second moments of a linear's inputs over a text: sums of x_i x_j / tokens, [k][k], symmetric.
struct Moments {
  int64_t k = 0;
  std::vector<float> products;
  std::vector<float> magnitudes;  // [k], mean of |x_i|

  float diagonal(int64_t i) const { return products[static_cast<size_t>(i * k + i)]; }
};

struct GptqOptions {
  double damp = 0.01;  // added to the diagonal, as a share of its mean
  // Columns of large inputs go first, when there are most others to make up for their errors: any column, or, when false,
  // within its group, groups by their largest ones, so that groups stay those of neighbours (GPTQModel's act_group_aware).
  bool act_order = false;
  bool static_groups = false;  // scales are chosen beforehand, from groups of neighbours
};

// What GPTQ needs of the inputs, shared by all linears that read them.
class GptqPlan {
 public:
  // Takes the moments' memory. Raises the damping until the matrix can be factored. The linears have grids like `spec`.
  static Result<GptqPlan> create(Device& device, Moments moments, const GridSpec& spec, const GptqOptions& options);

  int64_t k() const { return k_; }
  double damp() const { return damp_; }

  // `weights` [n][k] are changed.
  QuantizedRows quantize(Device& device, const GridSpec& spec, int64_t n, std::vector<float> weights) const;

 private:
  int64_t k_ = 0;
  double damp_ = 0;
  int64_t unit_ = 0;  // grid.h, of all linears
  int64_t group_ = 0;
  GptqOptions options_;
  std::vector<float> factor_;   // [k][k], upper (inverse_factor.h), columns in order_
  std::vector<int32_t> order_;  // the column at each place
  std::vector<uint8_t> dead_;   // [k], by column: its input was always 0
};

// Each weight to the nearest code; scales are chosen with `importance` [k] of the columns, or, where it is empty, plainly.
QuantizedRows round_to_nearest(Device& device, const GridSpec& spec, int64_t n, std::span<const float> weights,
                               std::span<const float> importance);

// Plainly, in place: values become what their codes stand for.
void round_values(Device& device, const GridSpec& spec, int64_t n, std::vector<float>& values);

}  // namespace quire
