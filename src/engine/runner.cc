#include "engine/runner.h"

#include <utility>

#include "base/check.h"

namespace quire {

Runner::Runner(std::unique_ptr<Model> model, int64_t logit_rows)
    : model_(std::move(model)),
      logit_rows_(logit_rows),
      logits_(static_cast<size_t>(logit_rows * model_->config().vocab_size)) {}

Status Runner::run(const StepPlan& plan) {
  for (const PageCopy& copy : plan.copies) model_->kv().copy_slots(copy.group, copy.from, copy.to, copy.slots);
  StepInput input;
  const size_t groups = model_->config().kv_groups.size();
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const auto tables = plan.page_tables.begin() + static_cast<std::ptrdiff_t>(i * groups);
    input.sequences.push_back({.rows = plan.rows[i].rows,
                               .first_position = plan.rows[i].first_position,
                               .page_tables = {tables, tables + static_cast<std::ptrdiff_t>(groups)}});
  }
  input.tokens = plan.tokens;
  model_->forward(input);
  return {};
}

std::span<const float> Runner::logits(std::span<const int32_t> rows) {
  QUIRE_CHECK(static_cast<int64_t>(rows.size()) <= logit_rows_);
  model_->logits(rows, logits_.data());
  return std::span<const float>(logits_).first(rows.size() * static_cast<size_t>(vocab_size()));
}

void Runner::parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  model_->parallel(count, body);
}

}  // namespace quire
