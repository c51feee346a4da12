// Turns the logits of a step into tokens. Keeps what each sequence has been told so far; a sequence's tokens are a function
// of its parameters, prompt and logits alone, whatever else is in the step and however many threads there are.
//
// Thread: one at a time; the work inside is spread over LogitSource::parallel.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/step_sampling.h"
#include "sample/sampler.h"

namespace quire {

// Where the logits of the forward pass just done come from.
class LogitSource {
 public:
  virtual ~LogitSource() = default;

  virtual int64_t vocab_size() const = 0;
  virtual int64_t max_logit_rows() const = 0;  // that may be asked for at a time
  // Of rows of the step, counted over the whole plan: [rows.size()][vocab_size]. Valid until the next call.
  virtual Result<std::span<const float>> logits(std::span<const int32_t> rows) = 0;
  virtual float log_sum_exp(std::span<const float> logits) = 0;
  // body(begin, end) over [0, count), on however many threads there are.
  virtual void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) = 0;
};

class StepSampler {
 public:
  Result<StepResult> sample(const StepPlan& plan, const StepSampling& sampling, LogitSource& source);

  size_t sequences() const { return states_.size(); }

 private:
  struct SequenceState {
    Sampler sampler;
    uint64_t sampled = 0;  // tokens so far: the index of the next draw
  };
  struct LogitRow;

  static std::vector<LogitRow> logit_rows(const StepPlan& plan);
  void sample_row(const LogitRow& row, const RowSampling& sampling, std::span<const float> logits, LogitSource& source,
                  RowResult& result);
  void draw(const RowSampling& sampling, std::span<const float> logits, LogitSource& source, SampledSequence& to);

  std::unordered_map<SequenceId, SequenceState> states_;
};

}  // namespace quire
