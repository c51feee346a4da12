// How long a step takes on this machine, learned while serving: t = f(rows) + h(logit rows) + c * attention.
//
// f and h are tables, interpolated linearly: the time of a step has a knee where weights stop being read faster than
// they are used, and the head can cost more than a layer. Every measured step corrects the two entries it lies between
// in each table, and c, in proportion to how uncertain each still is (a Kalman filter whose covariance is kept diagonal).
// Uncertainty grows back slowly, so the model follows a machine that becomes busy. f is kept non-decreasing.
//
// Thread: one at a time. Predictions steer how much work a step gets, never what comes out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// What of a step decides its time.
struct StepShape {
  int64_t rows = 0;
  int64_t logit_rows = 0;
  int64_t attention = 0;  // attended tokens summed over rows and layers, see attention_tokens()
};

// Tokens attended by `rows` consecutive rows from position `first` on, when each sees at most `window` (0: all).
int64_t attention_tokens(int64_t first, int64_t rows, int64_t window);

class StepTimeModel {
 public:
  StepTimeModel();

  bool fitted() const { return observations_ > 0; }

  // Nanoseconds; 0 before the first observation.
  int64_t predict_ns(const StepShape& shape) const;

  void observe(const StepShape& shape, int64_t step_ns);

  // |predicted - measured| / measured of recent steps, each predicted before it was learned from; the running mean
  // forgets with a half-life of about 35 steps.
  double relative_error() const { return relative_error_; }

 private:
  // A table over knots 0, 1, 2, ... rows.
  struct Table {
    std::vector<double> knots;
    std::vector<double> value_ns;
    std::vector<double> variance;
    std::vector<bool> seen;
  };
  struct Position {  // between knots `low` and `low + 1`
    size_t low = 0;
    double high_weight = 0;
  };

  static Table make_table();
  static Position locate(const Table& table, int64_t rows);
  static double value(const Table& table, const Position& at);
  static double spread(const Table& table, const Position& at);
  static void correct(Table& table, const Position& at, double surprise_ns, double total_variance);
  static void keep_order(Table& table, size_t measured);
  static void fill_unseen(Table& table);
  void start(const StepShape& shape, double step_ns);

  Table f_;
  Table h_;
  double attention_ns_ = 0;  // c
  double attention_variance_ = 0;
  double scale_ns_ = 0;  // running mean of step times: the unit of uncertainty
  double relative_error_ = 0;
  int64_t observations_ = 0;
};

}  // namespace quire
