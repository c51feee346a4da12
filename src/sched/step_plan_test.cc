#include "sched/step_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace quire {
namespace {

// Two sequences, two groups, pages of 16 tokens: a decode with two drafts at position 20, and a prompt of three.
StepPlan small_plan() {
  StepPlan plan;
  plan.groups = 2;
  plan.rows = {{.id = 7, .first_position = 20, .rows = 3, .draft_rows = 2, .logit_rows = 3, .samples = 1},
               {.id = 9, .first_position = 0, .rows = 3, .logit_rows = 1, .samples = 2}};
  plan.tokens = {5, 6, 7, 1, 2, 3};
  plan.pages = {4, 1, kNoPage, 2, 0, 3};
  plan.page_offsets = {0, 2, 4, 5, 6};
  plan.moves = {{.kind = PageMove::Kind::kCopy, .group = 1, .from = 3, .to = 2, .slots = 4}};
  return plan;
}

PlanBounds small_bounds() {
  return {.vocab_size = 10, .max_rows = 8, .context = 32, .page_tokens = 16, .groups = {{5, 0}, {4, 4}}};
}

TEST(StepPlan, ComesBackFromBytes) {
  const StepPlan plan = small_plan();
  const auto parsed = StepPlan::parse(plan.bytes());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->rows, plan.rows);
  EXPECT_EQ(parsed->tokens, plan.tokens);
  EXPECT_EQ(parsed->pages, plan.pages);
  EXPECT_EQ(parsed->page_offsets, plan.page_offsets);
  EXPECT_EQ(parsed->moves, plan.moves);
  EXPECT_EQ(parsed->bytes(), plan.bytes());
  EXPECT_EQ(parsed->page_table(1, 0).front(), 0);
  EXPECT_EQ(parsed->page_table(0, 0).back(), 1);
  EXPECT_TRUE(check_plan(*parsed, small_bounds()).ok()) << check_plan(*parsed, small_bounds()).message();
}

TEST(StepPlan, BytesThatAreCutOffOrTooManyAreRefused) {
  const std::string bytes = small_plan().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(StepPlan::parse(std::string_view(bytes).substr(0, size)).status().code(), StatusCode::kCorrupt) << size;
  }
  EXPECT_EQ(StepPlan::parse(bytes + "x").status().code(), StatusCode::kCorrupt);
}

TEST(StepPlan, PlansThatWouldReadOrWriteElsewhereAreRefused) {
  const auto refused = [](const char* what, const std::function<void(StepPlan&)>& spoil) {
    StepPlan plan = small_plan();
    spoil(plan);
    EXPECT_EQ(check_plan(plan, small_bounds()).code(), StatusCode::kCorrupt) << what;
  };
  refused("a token outside the vocabulary", [](StepPlan& p) { p.tokens[2] = 10; });
  refused("a page outside the pool", [](StepPlan& p) { p.pages[1] = 5; });
  refused("a negative page", [](StepPlan& p) { p.pages[0] = kNoPage; });
  refused("a page that the window still needs", [](StepPlan& p) { p.pages[3] = kNoPage; });
  refused("a missing page", [](StepPlan& p) { p.rows[0].first_position = 30; });
  refused("a position behind the context", [](StepPlan& p) { p.rows[1].first_position = INT64_MAX - 1; });
  refused("offsets that go back", [](StepPlan& p) { p.page_offsets[1] = 5; });
  refused("offsets beyond the pages", [](StepPlan& p) { p.page_offsets.back() = 7; });
  refused("fewer tokens than rows", [](StepPlan& p) { p.tokens.pop_back(); });
  refused("more drafts than rows", [](StepPlan& p) { p.rows[0].draft_rows = 3; });
  refused("logits of more rows than there are", [](StepPlan& p) { p.rows[0].logit_rows = 4; });
  refused("a sample without logits", [](StepPlan& p) { p.rows[1].logit_rows = 0; });
  refused("a move in no group", [](StepPlan& p) { p.moves[0].group = 2; });
  refused("a move to no page", [](StepPlan& p) { p.moves[0].to = 4; });
  refused("a move of too many slots", [](StepPlan& p) { p.moves[0].slots = 17; });
  refused("too few groups", [](StepPlan& p) { p.groups = 1; });
  refused("no group", [](StepPlan& p) { p.groups = 0; });
}

}  // namespace
}  // namespace quire
