#include "eval/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "eval/divergence.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

// Rows whose logits exist at a time: 32 of 262,144 tokens are 34 MB a buffer.
constexpr int64_t kSliceRows = 32;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One row that is scored: where it is in its step, and what follows it in the text.
struct ScoredRow {
  int32_t row = 0;
  int64_t window = 0;
  int32_t target = 0;
};

// What one row says of a candidate.
struct RowResult {
  double log_likelihood = 0;
  double reference_log_likelihood = 0;
  double kl = 0;
  double logit_max = 0;
  bool same_top = false;
};

// The same rows of some windows: [first_window, first_window + windows) from position `begin` to `end`.
struct Step {
  int64_t first_window = 0;
  int64_t windows = 1;
  int64_t begin = 0;
  int64_t end = 0;
};

class Evaluator {
 public:
  Evaluator(const EvalModel* reference, std::span<const EvalModel> candidates, const EvalText& text)
      : reference_(reference), candidates_(candidates), text_(text) {
    const EvalModel& first = reference != nullptr ? *reference : candidates.front();
    vocab_ = first.model->config().vocab_size;
    pages_per_window_ = (text.window() + kPageTokens - 1) / kPageTokens;
    result_.candidates.resize(candidates.size());
  }

  // Fails on models that cannot be judged together on this text.
  Status prepare() {
    windows_per_step_ = text_.windows();
    max_rows_ = text_.window() * text_.windows();
    if (reference_ != nullptr) QUIRE_RETURN_IF_ERROR(admit(*reference_));
    for (const EvalModel& candidate : candidates_) QUIRE_RETURN_IF_ERROR(admit(candidate));
    windows_per_step_ = std::clamp<int64_t>(max_rows_ / text_.window(), 1, windows_per_step_);
    pages_.resize(static_cast<size_t>(windows_per_step_ * pages_per_window_));
    std::iota(pages_.begin(), pages_.end(), 0);
    const auto slice = static_cast<size_t>(kSliceRows * vocab_);
    logits_.resize(slice);
    if (reference_ != nullptr) {
      reference_logits_.resize(slice);
      reference_weights_.resize(slice);
    }
    return {};
  }

  Result<Evaluation> run(const EvalOptions& options) {
    const Clock::time_point start = Clock::now();
    while (result_.windows < text_.windows()) {
      if (result_.windows > 0 && options.max_seconds > 0 && seconds_since(start) > options.max_seconds) break;
      QUIRE_RETURN_IF_ERROR(judge(std::min(windows_per_step_, text_.windows() - result_.windows)));
      const double done = static_cast<double>(result_.windows) / static_cast<double>(text_.windows());
      if (options.progress && !options.progress(done)) return cancelled("");
    }
    return std::move(result_);
  }

 private:
  Status admit(const EvalModel& subject) {
    const ModelConfig& config = subject.model->config();
    if (config.vocab_size != vocab_) {
      return invalid_argument(subject.name + ": its vocabulary has " + std::to_string(config.vocab_size) +
                              " tokens, that of the model it is compared with " + std::to_string(vocab_));
    }
    int64_t windows = windows_per_step_;
    for (size_t g = 0; g < config.kv_groups.size(); ++g)
      windows = std::min(windows, subject.model->kv().pages(static_cast<int>(g)) / pages_per_window_);
    if (windows < 1) {
      return invalid_argument(subject.name + ": too few KV pages for a window of " + std::to_string(text_.window()) +
                              " tokens: give a smaller window");
    }
    windows_per_step_ = windows;
    max_rows_ = std::min(max_rows_, subject.max_rows);
    return {};
  }

  // The next `windows` windows, in one step or, where they are longer than one, several.
  Status judge(int64_t windows) {
    if (reference_ != nullptr) result_.reference.resize(static_cast<size_t>(result_.windows + windows));
    for (auto& scores : result_.candidates) scores.resize(static_cast<size_t>(result_.windows + windows));
    const int64_t rows = std::min(max_rows_ / windows, text_.window());
    for (int64_t begin = 0; begin < text_.window(); begin += rows) {
      const Step step = {.first_window = result_.windows,
                         .windows = windows,
                         .begin = begin,
                         .end = std::min(begin + rows, text_.window())};
      QUIRE_RETURN_IF_ERROR(take_step(step));
    }
    result_.windows += windows;
    return {};
  }

  Status take_step(const Step& step) {
    const Clock::time_point start = Clock::now();
    if (reference_ != nullptr) QUIRE_RETURN_IF_ERROR(forward(*reference_->model, step));
    for (const EvalModel& candidate : candidates_) QUIRE_RETURN_IF_ERROR(forward(*candidate.model, step));
    result_.forward_seconds += seconds_since(start);

    std::vector<ScoredRow> rows;
    for (int64_t w = 0; w < step.windows; ++w) {
      const auto tokens = text_.tokens_of(step.first_window + w);
      for (int64_t i = std::max(step.begin, text_.first_row()); i < std::min(step.end, text_.window() - 1); ++i) {
        rows.push_back({.row = static_cast<int32_t>(w * (step.end - step.begin) + i - step.begin),
                        .window = step.first_window + w,
                        .target = tokens[static_cast<size_t>(i + 1)]});
      }
    }
    for (size_t at = 0; at < rows.size(); at += kSliceRows) {
      const std::span<const ScoredRow> all(rows);
      QUIRE_RETURN_IF_ERROR(score(all.subspan(at, std::min<size_t>(kSliceRows, rows.size() - at))));
    }
    return {};
  }

  Status forward(Model& model, const Step& step) {
    StepInput input;
    for (int64_t w = 0; w < step.windows; ++w) {
      const int32_t* pages = pages_.data() + w * pages_per_window_;
      input.sequences.push_back({.rows = step.end - step.begin,
                                 .first_position = step.begin,
                                 .page_tables = std::vector<const int32_t*>(model.config().kv_groups.size(), pages)});
      const auto tokens = text_.tokens_of(step.first_window + w);
      input.tokens.insert(input.tokens.end(), tokens.begin() + step.begin, tokens.begin() + step.end);
    }
    return model.forward(input);
  }

  // At most kSliceRows rows of the last step.
  Status score(std::span<const ScoredRow> rows) {
    std::vector<int32_t> indices;
    for (const ScoredRow& row : rows) indices.push_back(row.row);
    if (reference_ != nullptr) {
      QUIRE_RETURN_IF_ERROR(logits_of(*reference_, indices, reference_logits_.data(), reference_weights_.data()));
      reference_summaries_ = summaries_;
      for (size_t i = 0; i < rows.size(); ++i) {
        const double likelihood =
            reference_logits_[i * static_cast<size_t>(vocab_) + rows[i].target] - reference_summaries_[i].log_sum;
        add_likelihood(result_.reference[static_cast<size_t>(rows[i].window)], likelihood);
      }
    }
    for (size_t c = 0; c < candidates_.size(); ++c) {
      QUIRE_RETURN_IF_ERROR(logits_of(candidates_[c], indices, logits_.data(), nullptr));
      const std::vector<RowResult> results = compare(*candidates_[c].model, rows);
      for (size_t i = 0; i < rows.size(); ++i)
        add(result_.candidates[c][static_cast<size_t>(rows[i].window)], results[i]);
    }
    return {};
  }

  // Logits, and summaries_ of them.
  Status logits_of(const EvalModel& subject, std::span<const int32_t> rows, float* logits, float* weights) {
    Clock::time_point start = Clock::now();
    subject.model->logits(rows, logits);
    result_.forward_seconds += seconds_since(start);
    start = Clock::now();
    summaries_.resize(rows.size());
    subject.model->parallel(static_cast<int64_t>(rows.size()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        summaries_[static_cast<size_t>(i)] =
            summarize_row(logits + i * vocab_, vocab_, weights == nullptr ? nullptr : weights + i * vocab_);
      }
    });
    result_.comparison_seconds += seconds_since(start);
    for (const RowSummary& summary : summaries_) {
      if (!std::isfinite(summary.log_sum)) {
        return corrupt(subject.name + ": its logits are not finite in windows " + std::to_string(result_.windows + 1) +
                       " to " + std::to_string(result_.windows + windows_per_step_) +
                       " of the text: the weights are damaged, or values overflow (try --compute f32)");
      }
    }
    return {};
  }

  std::vector<RowResult> compare(Model& model, std::span<const ScoredRow> rows) {
    const Clock::time_point start = Clock::now();
    std::vector<RowResult> results(rows.size());
    model.parallel(static_cast<int64_t>(rows.size()), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto at = static_cast<size_t>(i);
        RowResult& result = results[at];
        result.log_likelihood = logits_[i * vocab_ + rows[at].target] - summaries_[at].log_sum;
        if (reference_ == nullptr) continue;
        const float* p = reference_logits_.data() + i * vocab_;
        const RowSummary& p_summary = reference_summaries_[at];
        const RowDivergence divergence = diverge(p, reference_weights_.data() + i * vocab_, p_summary,
                                                 logits_.data() + i * vocab_, summaries_[at], vocab_);
        result.reference_log_likelihood = p[rows[at].target] - p_summary.log_sum;
        result.kl = divergence.kl;
        result.logit_max = divergence.logit_max;
        result.same_top = p_summary.top == summaries_[at].top;
      }
    });
    result_.comparison_seconds += seconds_since(start);
    return results;
  }

  static void add_likelihood(WindowScore& score, double log_likelihood) {
    score.tokens += 1;
    score.nll -= log_likelihood;
    score.nll_squares += log_likelihood * log_likelihood;
  }

  void add(WindowScore& score, const RowResult& row) const {
    add_likelihood(score, row.log_likelihood);
    if (reference_ == nullptr) return;
    const double difference = row.log_likelihood - row.reference_log_likelihood;
    score.kl += row.kl;
    score.same_top += row.same_top ? 1 : 0;
    score.logprob_gap -= difference;
    score.logprob_squares += difference * difference;
    score.logprob_max = std::max(score.logprob_max, std::abs(difference));
    score.logit_max = std::max(score.logit_max, row.logit_max);
  }

  const EvalModel* reference_;
  std::span<const EvalModel> candidates_;
  const EvalText& text_;
  int64_t vocab_ = 0;
  int64_t pages_per_window_ = 0;
  int64_t windows_per_step_ = 0;
  int64_t max_rows_ = 0;
  std::vector<int32_t> pages_;  // [window of a step][page], the same for every model and group
  std::vector<float> logits_, reference_logits_, reference_weights_;  // [kSliceRows][vocab]
  std::vector<RowSummary> summaries_, reference_summaries_;           // of the slice
  Evaluation result_;
};

}  // namespace

Result<Evaluation> evaluate(const EvalModel* reference, std::span<const EvalModel> candidates, const EvalText& text,
                            const EvalOptions& options) {
  Evaluator evaluator(reference, candidates, text);
  QUIRE_RETURN_IF_ERROR(evaluator.prepare());
  return evaluator.run(options);
}

}  // namespace quire
