// Figures over windows, with their uncertainty. Plain functions; any thread.
//
// Perplexity has the standard error that llama.cpp prints: that of the mean log-likelihood over tokens, carried over by
// the delta method. Everything else is compared between windows, since neighbouring tokens are not independent: the
// standard error of a mean over windows is s / sqrt(n), of n windows whose means have the sample deviation s.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace quire {

// Sums over the scored tokens of one window. Log-likelihoods are natural.
struct WindowScore {
  int64_t tokens = 0;
  double nll = 0;          // minus the log-likelihoods of the text's tokens
  double nll_squares = 0;  // their squares

  // Against the reference; nothing without one.
  double kl = 0;               // KL(reference || model), nats
  int64_t same_top = 0;        // tokens with the same most likely token
  double logprob_gap = 0;      // nll minus the reference's
  double logprob_squares = 0;  // of the differences of the true token's log-probability
  double logprob_max = 0;      // the largest of these, absolute
  double logit_max = 0;        // the largest absolute difference of any two logits
};

struct Estimate {
  double value = 0;
  std::optional<double> error;  // standard error; none where one window or token says nothing of it
};

struct Interval {
  double low = 0;
  double high = 0;
};

Estimate perplexity(std::span<const WindowScore> windows);
Estimate mean_kl(std::span<const WindowScore> windows);        // nats a token
Estimate top_agreement(std::span<const WindowScore> windows);  // share of tokens, 0 to 1
// The model's perplexity over the reference's on the same tokens.
Estimate perplexity_ratio(std::span<const WindowScore> windows);
double logprob_rms(std::span<const WindowScore> windows);
double logprob_max(std::span<const WindowScore> windows);
double logit_max(std::span<const WindowScore> windows);

// Below this the mean KL divergence lies with 97.5 % confidence: mean + 1.96 standard errors. None for one window.
std::optional<double> mean_kl_upper(std::span<const WindowScore> windows);

// 95 % interval of the ratio of the mean KL divergence of `model` to that of `baseline`, which saw the same windows:
// percentile bootstrap over windows, both drawn together (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
// chapter 13). None for one window, or where the baseline does not diverge at all. The same for the same input.
std::optional<Interval> kl_ratio_interval(std::span<const WindowScore> model, std::span<const WindowScore> baseline);

}  // namespace quire
