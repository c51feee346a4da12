#include "cost/step_time_model.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

constexpr double kKnots[] = {0, 1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 2048};

// A measured step differs from the model by this share of its time, from clocks, interrupts and neighbours.
constexpr double kNoise = 0.05;
// A part that has not been seen may be wrong by this share of a step's time.
constexpr double kTableDoubt = 1.0;
constexpr double kHeadDoubt = 0.3;
constexpr double kAttentionDoubt = 0.3;
// What a step adds to the doubt of the parts it touches, relative to a step's time.
constexpr double kDrift = 0.01;
// One step that the operating system interrupted says little: it counts as at most this multiple of the prediction.
constexpr double kLargestSurprise = 4.0;
constexpr double kErrorMemory = 0.98;

double square(double x) { return x * x; }

}  // namespace

int64_t attention_tokens(int64_t first, int64_t rows, int64_t window) {
  if (window == 0) return rows * first + rows * (rows + 1) / 2;
  const int64_t growing = std::clamp<int64_t>(window - first, 0, rows);  // rows that still see every token before them
  return growing * first + growing * (growing + 1) / 2 + (rows - growing) * window;
}

StepTimeModel::StepTimeModel() : f_(make_table()), h_(make_table()) {}

StepTimeModel::Table StepTimeModel::make_table() {
  Table table;
  table.knots.assign(std::begin(kKnots), std::end(kKnots));
  table.value_ns.resize(table.knots.size());
  table.variance.resize(table.knots.size());
  table.seen.resize(table.knots.size());
  return table;
}

StepTimeModel::Position StepTimeModel::locate(const Table& table, int64_t rows) {
  const double x = static_cast<double>(rows);
  const auto above = std::upper_bound(table.knots.begin() + 1, table.knots.end() - 1, x);
  const size_t low = static_cast<size_t>(above - table.knots.begin()) - 1;
  return {low, (x - table.knots[low]) / (table.knots[low + 1] - table.knots[low])};
}

double StepTimeModel::value(const Table& table, const Position& at) {
  return table.value_ns[at.low] * (1 - at.high_weight) + table.value_ns[at.low + 1] * at.high_weight;
}

double StepTimeModel::spread(const Table& table, const Position& at) {
  return table.variance[at.low] * square(1 - at.high_weight) + table.variance[at.low + 1] * square(at.high_weight);
}

int64_t StepTimeModel::predict_ns(const StepShape& shape) const {
  const double ns = value(f_, locate(f_, shape.rows)) + value(h_, locate(h_, shape.logit_rows)) +
                    attention_ns_ * static_cast<double>(shape.attention);
  return std::llround(std::max(0.0, ns));
}

void StepTimeModel::start(const StepShape& shape, double step_ns) {
  scale_ns_ = step_ns;
  std::fill(f_.variance.begin(), f_.variance.end(), square(kTableDoubt * step_ns));
  std::fill(h_.variance.begin() + 1, h_.variance.end(), square(kHeadDoubt * step_ns));  // no logit rows cost nothing
  attention_variance_ = square(kAttentionDoubt * step_ns / static_cast<double>(std::max<int64_t>(shape.attention, 1)));
}

void StepTimeModel::observe(const StepShape& shape, int64_t step_ns) {
  if (shape.rows <= 0 || step_ns <= 0) return;
  double measured = static_cast<double>(step_ns);
  const double predicted = static_cast<double>(predict_ns(shape));
  if (!fitted()) {
    start(shape, measured);
  } else {
    const double error = std::abs(predicted - measured) / measured;
    relative_error_ = observations_ == 1 ? error : kErrorMemory * relative_error_ + (1 - kErrorMemory) * error;
    measured = std::min(measured, kLargestSurprise * std::max(predicted, scale_ns_ / kLargestSurprise));
    scale_ns_ = kErrorMemory * scale_ns_ + (1 - kErrorMemory) * measured;
  }
  const Position rows = locate(f_, shape.rows);
  const Position logits = locate(h_, shape.logit_rows);
  const double attention = static_cast<double>(shape.attention);
  const double total =
      spread(f_, rows) + spread(h_, logits) + attention_variance_ * square(attention) + square(kNoise * measured);
  const double surprise = measured - predicted;

  correct(f_, rows, surprise, total);
  correct(h_, logits, surprise, total);
  const double share = attention_variance_ * attention / total;
  attention_ns_ = std::max(0.0, attention_ns_ + share * surprise);
  attention_variance_ *= 1 - share * attention;

  // Forgetting: doubt returns up to where it began.
  const double drift = square(kDrift * scale_ns_);
  for (Table* table : {&f_, &h_}) {
    const Position& at = table == &f_ ? rows : logits;
    for (size_t knot = at.low; knot <= at.low + 1; ++knot) {
      if (table->variance[knot] > 0) table->variance[knot] += drift;
    }
  }
  if (attention > 0) attention_variance_ += square(kDrift * kAttentionDoubt * scale_ns_ / attention);
  ++observations_;
}

// One table's part of the surprise, by its entries' share of the doubt; the rest of the table then follows.
void StepTimeModel::correct(Table& table, const Position& at, double surprise_ns, double total_variance) {
  const double weights[] = {1 - at.high_weight, at.high_weight};
  for (size_t side = 0; side < 2; ++side) {
    const size_t knot = at.low + side;
    if (weights[side] <= 0 || table.variance[knot] <= 0) continue;
    const double gain = table.variance[knot] * weights[side] / total_variance;
    table.value_ns[knot] = std::max(0.0, table.value_ns[knot] + gain * surprise_ns);
    table.variance[knot] *= 1 - gain * weights[side];
    table.seen[knot] = true;
  }
  keep_order(table, at.low);
  fill_unseen(table);
}

// More rows never take less time. Where entries disagree the ones just measured are right.
void StepTimeModel::keep_order(Table& table, size_t measured) {
  std::vector<double>& ns = table.value_ns;
  const size_t upper = table.seen[measured + 1] ? measured + 1 : measured;
  const size_t lower = table.seen[measured] ? measured : upper;
  if (!table.seen[lower]) return;
  if (lower > 0) ns[upper] = std::max(ns[upper], ns[lower]);
  for (size_t i = 1; i < lower; ++i) ns[i] = std::min(ns[i], ns[lower]);
  for (size_t i = upper + 1; i < ns.size(); ++i) ns[i] = std::max(ns[i], ns[upper]);
}

// Entries never measured: below the first measured one, its time; between two, a straight line; above the last, growing
// as the last two do, and in proportion to the rows where there is only one.
void StepTimeModel::fill_unseen(Table& table) {
  const std::vector<double>& x = table.knots;
  std::vector<double>& ns = table.value_ns;
  size_t before = 0;
  size_t last = 0;  // 0: none seen yet
  for (size_t i = 1; i < x.size(); ++i) {
    if (!table.seen[i]) continue;
    for (size_t between = last + 1; between < i; ++between) {
      const double along = last == 0 ? 1 : (x[between] - x[last]) / (x[i] - x[last]);
      ns[between] = last == 0 ? ns[i] : ns[last] + along * (ns[i] - ns[last]);
    }
    before = last;
    last = i;
  }
  if (last == 0) return;
  const double slope = (ns[last] - (before == 0 ? 0 : ns[before])) / (x[last] - x[before]);
  for (size_t i = last + 1; i < x.size(); ++i) ns[i] = ns[last] + slope * (x[i] - x[last]);
}

}  // namespace quire
