// Models judged on a text: perplexity, and how far their distributions are from a reference's.
//
// All models go over the text in lockstep, a step of windows at a time, so that logits exist for a slice of rows of two
// models at most, and the reference is computed once whatever the number of candidates. The caller's thread is worker 0
// of every model's pool.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "eval/statistics.h"
#include "eval/windows.h"
#include "model/model.h"

namespace quire {

// A loaded model, which stays the caller's. Its pages are overwritten: nothing else may be in flight on it. For a window
// of W tokens and `max_rows` of its workspace it needs, in every KV group, pages for one window at least; more let steps
// hold several windows.
struct EvalModel {
  std::string name;  // for messages
  Model* model = nullptr;
  int64_t max_rows = 0;  // of a step: the model's own limit, or less
};

struct EvalOptions {
  double max_seconds = 0;  // no step starts later than this; at least one is made. 0: no limit
  // Called after every step with the fraction done; return false to stop with kCancelled.
  std::function<bool(double fraction)> progress;
};

struct Evaluation {
  int64_t windows = 0;                               // judged: all of the text's, or those before the time ran out
  std::vector<WindowScore> reference;                // likelihoods only; empty without a reference
  std::vector<std::vector<WindowScore>> candidates;  // [candidate][window]
  double forward_seconds = 0;                        // in models
  double comparison_seconds = 0;                     // in softmax and divergence
};

// `reference` may be null: then candidates have likelihoods only. Fails where a model has too few pages for a window,
// where vocabularies differ, and on logits that are not finite.
Result<Evaluation> evaluate(const EvalModel* reference, std::span<const EvalModel> candidates, const EvalText& text,
                            const EvalOptions& options);

}  // namespace quire
