#include "cost/step_time_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"

namespace quire {
namespace {

int64_t count_attention(int64_t first, int64_t rows, int64_t window) {
  int64_t sum = 0;
  for (int64_t i = 1; i <= rows; ++i) sum += window > 0 ? std::min(first + i, window) : first + i;
  return sum;
}

TEST(AttentionTokens, CountsWhatEachRowSees) {
  for (const int64_t window : {0, 1, 5, 16, 100}) {
    for (const int64_t first : {0, 1, 4, 5, 15, 99, 100, 1000}) {
      for (const int64_t rows : {0, 1, 7, 64}) {
        EXPECT_EQ(attention_tokens(first, rows, window), count_attention(first, rows, window))
            << first << " " << rows << " " << window;
      }
    }
  }
}

// A machine with a knee at 10 rows, a costly head and attention, and 5 % of noise.
class Machine {
 public:
  explicit Machine(double slowdown = 1) : slowdown_(slowdown) {}

  double exact_ns(const StepShape& shape) const {
    const double rows = static_cast<double>(shape.rows);
    return slowdown_ * (8e6 + 4e5 * std::max(0.0, rows - 10) + 2e5 * static_cast<double>(shape.logit_rows) +
                        60.0 * static_cast<double>(shape.attention));
  }
  int64_t measure_ns(const StepShape& shape) {
    const double noise = static_cast<double>(random_bits(7, draw_++, RandomPurpose::kSample) >> 40) / (1 << 24) - 0.5;
    return std::llround(exact_ns(shape) * (1 + 0.1 * noise));
  }
  int64_t pick(int64_t below) {
    return static_cast<int64_t>(random_bits(8, draw_++, RandomPurpose::kSample) % static_cast<uint64_t>(below));
  }

 private:
  double slowdown_;
  uint64_t draw_ = 0;
};

StepShape serving_step(Machine& machine) {
  const int64_t decodes = machine.pick(17);
  const int64_t prompt = machine.pick(2) == 0 ? 0 : machine.pick(120);
  StepShape shape{std::max<int64_t>(1, decodes + prompt), decodes, 0};
  shape.attention = decodes * (100 + machine.pick(900)) + attention_tokens(machine.pick(500), prompt, 0);
  return shape;
}

TEST(StepTimeModel, LearnsAKneeTheHeadAndAttention) {
  Machine machine;
  StepTimeModel model;
  EXPECT_FALSE(model.fitted());
  EXPECT_EQ(model.predict_ns({4, 4, 100}), 0);
  for (int i = 0; i < 1500; ++i) {
    const StepShape shape = serving_step(machine);
    model.observe(shape, machine.measure_ns(shape));
  }
  EXPECT_LT(model.relative_error(), 0.08);
  for (const int64_t rows : {1, 4, 8, 12, 16, 32, 64, 100}) {
    const StepShape shape{rows, std::min<int64_t>(rows, 8), rows * 300};
    EXPECT_NEAR(static_cast<double>(model.predict_ns(shape)) / machine.exact_ns(shape), 1, 0.12) << rows << " rows";
  }
}

TEST(StepTimeModel, FollowsAMachineThatBecameBusy) {
  StepTimeModel model;
  Machine idle;
  for (int i = 0; i < 500; ++i) {
    const StepShape shape = serving_step(idle);
    model.observe(shape, idle.measure_ns(shape));
  }
  Machine busy(2.0);
  for (int i = 0; i < 500; ++i) {
    const StepShape shape = serving_step(busy);
    model.observe(shape, busy.measure_ns(shape));
  }
  EXPECT_LT(model.relative_error(), 0.10);
}

TEST(StepTimeModel, OneInterruptedStepChangesLittle) {
  StepTimeModel model;
  Machine machine;
  const StepShape decode{8, 8, 2400};
  for (int i = 0; i < 200; ++i) model.observe(decode, machine.measure_ns(decode));
  const int64_t before = model.predict_ns(decode);
  model.observe(decode, 100 * before);
  EXPECT_LT(model.predict_ns(decode), before * 3 / 2);
}

TEST(StepTimeModel, UnseenSizesGrowWithTheRowsAndNeverShrink) {
  StepTimeModel model;
  model.observe({8, 8, 100}, 10'000'000);
  EXPECT_GT(model.predict_ns({64, 8, 100}), model.predict_ns({8, 8, 100}) * 3);
  for (int i = 0; i < 300; ++i) model.observe({1 + i % 40, 1, 100}, 10'000'000 + 300'000 * (i % 40 / 3));
  int64_t last = 0;
  for (int64_t rows = 1; rows < 3000; ++rows) {
    const int64_t ns = model.predict_ns({rows, 1, 100});
    EXPECT_GE(ns, last) << rows;
    last = ns;
  }
}

}  // namespace
}  // namespace quire
