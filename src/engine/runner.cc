#include "engine/runner.h"

#include <utility>

#include "base/check.h"

namespace quire {

Runner::Runner(std::unique_ptr<Model> model, int64_t logit_rows)
    : model_(std::move(model)),
      logit_rows_(logit_rows),
      logits_(static_cast<size_t>(logit_rows * model_->config().vocab_size)) {}

Result<StepResult> Runner::run(const StepPlan& plan, const StepSampling& sampling) {
  for (const PageMove& move : plan.moves) {
    if (move.kind != PageMove::Kind::kCopy)
      return unsupported("the plan saves or loads pages, but there is no page store");
    model_->kv().copy_slots(move.group, move.from, move.to, move.slots);
  }
  StepInput input;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    SequenceRows& rows = input.sequences.emplace_back();
    rows.rows = plan.rows[i].rows;
    rows.first_position = plan.rows[i].first_position;
    for (size_t g = 0; g < static_cast<size_t>(plan.groups); ++g)
      rows.page_tables.push_back(plan.page_table(i, g).data());
  }
  input.tokens = plan.tokens;
  QUIRE_RETURN_IF_ERROR(model_->forward(input));
  return sampler_.sample(plan, sampling, *this);
}

Result<std::span<const float>> Runner::logits(std::span<const int32_t> rows) {
  QUIRE_CHECK(static_cast<int64_t>(rows.size()) <= logit_rows_);
  model_->logits(rows, logits_.data());
  return std::span<const float>(logits_).first(rows.size() * static_cast<size_t>(vocab_size()));
}

void Runner::parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  model_->parallel(count, body);
}

}  // namespace quire
