#include "sched/policy.h"

#include <gtest/gtest.h>

namespace quire {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

PolicyChoice choose(const PolicyConfig& config, const PolicyView& view) { return (*make_policy(config))->choose(view); }

PolicyView waiting(int64_t count, int64_t waited_ms = 0) {
  PolicyView view;
  view.now_ns = 1000 * kMillisecond;
  view.oldest_waiting_ns = view.now_ns - waited_ms * kMillisecond;
  view.max_step_rows = 128;
  view.waiting = count;
  return view;
}

TEST(Policy, NamesGoBothWays) {
  for (const PolicyKind kind : {PolicyKind::kStatic, PolicyKind::kStaticPadded, PolicyKind::kDynamic,
                                PolicyKind::kContinuous, PolicyKind::kMixed}) {
    EXPECT_EQ(*parse_policy(policy_name(kind)), kind);
  }
  EXPECT_NE(parse_policy("magic").status().message().find("static-padded"), std::string::npos);
}

TEST(Policy, RefusesSizesWithoutSense) {
  EXPECT_FALSE(make_policy({.batch_size = 0}).ok());
  EXPECT_FALSE(make_policy({.kind = PolicyKind::kDynamic, .batch_size = 8, .preferred_sizes = {4, 16}}).ok());
  EXPECT_FALSE(make_policy({.kind = PolicyKind::kDynamic, .batch_size = 8, .preferred_sizes = {4, 2}}).ok());
  EXPECT_FALSE(make_policy({.max_delay_ns = -1}).ok());
  EXPECT_FALSE(make_policy({.decode_stretch_percent = 99}).ok());
}

TEST(Policy, StaticWaitsForAFullBatchOrTheDelay) {
  const PolicyConfig config{.kind = PolicyKind::kStatic, .batch_size = 8, .max_delay_ns = 10 * kMillisecond};
  EXPECT_EQ(choose(config, waiting(20)).start, 8);
  const PolicyChoice early = choose(config, waiting(7, 4));
  EXPECT_EQ(early.start, 0);
  EXPECT_EQ(early.wake_at_ns, 1006 * kMillisecond);
  EXPECT_EQ(choose(config, waiting(7, 10)).start, 7);
}

TEST(Policy, ABatchIsClosedUntilItHasFinished) {
  const PolicyConfig config{.kind = PolicyKind::kStatic, .batch_size = 8};
  PolicyView view = waiting(20, 100);
  view.started = 1;
  EXPECT_EQ(choose(config, view).start, 0);
  EXPECT_EQ(choose(config, view).wake_at_ns, kNever);
  view.granted = 3;
  EXPECT_EQ(choose(config, view).start, 3) << "those of the batch that found no rows in the first step";
}

TEST(Policy, DynamicFollowsTritonsRules) {
  PolicyConfig config{
      .kind = PolicyKind::kDynamic, .batch_size = 16, .preferred_sizes = {4, 8}, .max_delay_ns = kMillisecond};
  EXPECT_EQ(choose(config, waiting(17)).start, 16) << "the maximum goes at once";
  EXPECT_EQ(choose(config, waiting(11)).start, 8) << "the largest preferred size that can be filled";
  EXPECT_EQ(choose(config, waiting(5)).start, 4);
  EXPECT_EQ(choose(config, waiting(3)).start, 0);
  EXPECT_EQ(choose(config, waiting(3, 1)).start, 3) << "after the delay, what there is";
  config.preferred_sizes.clear();
  EXPECT_EQ(choose(config, waiting(11)).start, 0);
  config.max_delay_ns = 0;
  EXPECT_EQ(choose(config, waiting(1)).start, 1) << "no delay: at once";
}

TEST(Policy, MixedKeepsAStepWithinItsLimit) {
  StepTimeModel cost;
  for (int i = 0; i < 400; ++i) {
    const int64_t rows = 1 + i % 100;
    cost.observe({rows, 8, 0}, 20 * kMillisecond + rows * kMillisecond);
  }
  const std::vector<KvGroupConfig> groups = {{100, 0, 1}};
  PolicyView view = waiting(1);
  view.cost = &cost;
  view.groups = groups;
  view.decodes = {8, 8, 0};
  // Decodes alone: 28 ms. The limit is max(2.2 x 28, 50) = 61.6 ms: about 41 rows in all.
  const PolicyChoice choice = choose({}, view);
  EXPECT_TRUE(choice.mix);
  EXPECT_NEAR(static_cast<double>(choice.prompt_rows), 27, 5);
  EXPECT_NEAR(static_cast<double>(choose({.least_step_ns = 80 * kMillisecond}, view).prompt_rows), 44, 6);
  view.decodes = {100, 100, 0};
  EXPECT_LE(choose({}, view).prompt_rows, 28) << "never more than the step has left";
  view.max_step_rows = 101;
  EXPECT_EQ(choose({.decode_stretch_percent = 100, .least_step_ns = 1}, view).prompt_rows, 1) << "never under one";
  view.decodes = {};
  EXPECT_EQ(choose({}, view).prompt_rows, 101) << "nobody waits";
}

// A machine on which each row beyond the first takes 10 ms.
StepTimeModel ten_ms_a_row() {
  StepTimeModel cost;
  for (int round = 0; round < 50; ++round) {
    for (const int64_t rows : {1, 2, 4, 8, 16, 32}) cost.observe({rows, rows, 0}, rows * 10 * kMillisecond);
  }
  return cost;
}

TEST(Policy, MixedChargesDraftsToTheTimeLimit) {
  const StepTimeModel cost = ten_ms_a_row();
  const PolicyConfig config{.kind = PolicyKind::kMixed, .decode_stretch_percent = 300, .least_step_ns = 0};
  PolicyView view = waiting(1);
  view.cost = &cost;
  view.decodes = {.rows = 4, .logit_rows = 4};
  const PolicyChoice without = choose(config, view);
  EXPECT_EQ(without.draft_rows, 0);
  EXPECT_GE(without.prompt_rows, 4) << "4 rows stretched to nearly 12";
  view.drafts = {.rows = 3, .logit_rows = 3};
  const PolicyChoice few = choose(config, view);
  EXPECT_EQ(few.draft_rows, 3);
  EXPECT_LE(few.prompt_rows, without.prompt_rows - 2) << "drafts take from what prompts get";
  view.drafts = {.rows = 100, .logit_rows = 100};
  const PolicyChoice many = choose(config, view);
  EXPECT_LT(many.draft_rows, 9) << "not more than the limit holds";
  EXPECT_EQ(many.prompt_rows, 1);
}

TEST(Policy, OthersVerifyAllDrafts) {
  PolicyView view = waiting(0);
  view.started = 1;
  view.drafts = {.rows = 5, .logit_rows = 5};
  for (const PolicyKind kind : {PolicyKind::kStatic, PolicyKind::kDynamic, PolicyKind::kContinuous}) {
    EXPECT_EQ(choose({.kind = kind}, view).draft_rows, 5);
  }
}

}  // namespace
}  // namespace quire
