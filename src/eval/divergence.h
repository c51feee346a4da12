// Softmax and Kullback-Leibler divergence over rows of logits, as sums of f32 terms in blocks, the blocks in f64: fast
// enough to run beside a forward pass over vocabularies of 262,144, and exact enough for divergences of 1e-6 nats.
// Pure functions, any thread. Results depend on nothing but the row.
#pragma once

#include <cstdint>

namespace quire {

struct RowSummary {
  int32_t top = 0;     // index of the largest logit, the first of equals
  double log_sum = 0;  // log(sum(exp(logits))): a logit minus this is a log-probability. NaN where a logit is
};

// weights[i] = exp(logits[i] - largest logit), unless `weights` is null.
RowSummary summarize_row(const float* logits, int64_t n, float* weights);

struct RowDivergence {
  double kl = 0;        // nats; exactly 0 between equal rows, and of either sign within rounding (1e-7) beside it
  float logit_max = 0;  // largest absolute difference
};

// KL(p || q) from the logits of both, and p's weights as summarize_row wrote them.
RowDivergence diverge(const float* p, const float* p_weights, const RowSummary& p_summary, const float* q,
                      const RowSummary& q_summary, int64_t n);

}  // namespace quire
