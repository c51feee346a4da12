#include "sched/policy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sched/step_plan.h"

namespace quire {
namespace {

constexpr std::array<std::pair<std::string_view, PolicyKind>, 5> kNames = {{
    {"static", PolicyKind::kStatic},
    {"static-padded", PolicyKind::kStaticPadded},
    {"dynamic", PolicyKind::kDynamic},
    {"continuous", PolicyKind::kContinuous},
    {"mixed", PolicyKind::kMixed},
}};

// Before a step has been measured, prompt rows amid decodes are dealt carefully.
constexpr int64_t kUnmeasuredPromptRows = 32;

// Static and dynamic: whole batches.
class BatchPolicy : public Policy {
 public:
  BatchPolicy(PolicyConfig config, bool pads) : config_(std::move(config)), pads_(pads) {}

  PolicyChoice choose(const PolicyView& view) const override {
    PolicyChoice choice;
    choice.prompt_rows = view.max_step_rows;
    if (view.started > 0 || view.granted > 0) {
      choice.start = view.granted;
    } else {
      choice.start = size_to_start(view);
      if (choice.start == 0 && view.waiting > 0) choice.wake_at_ns = view.oldest_waiting_ns + config_.max_delay_ns;
    }
    return choice;
  }

  bool forms_batches() const override { return true; }
  bool pads() const override { return pads_; }

 private:
  int64_t size_to_start(const PolicyView& view) const {
    if (view.waiting >= config_.batch_size) return config_.batch_size;
    for (auto size = config_.preferred_sizes.rbegin(); size != config_.preferred_sizes.rend(); ++size) {
      if (view.waiting >= *size) return *size;
    }
    if (view.waiting > 0 && view.now_ns - view.oldest_waiting_ns >= config_.max_delay_ns) return view.waiting;
    return 0;
  }

  PolicyConfig config_;
  bool pads_;
};

class ContinuousPolicy : public Policy {
 public:
  PolicyChoice choose(const PolicyView& view) const override {
    return {view.waiting, false, view.max_step_rows, kNever};
  }
};

class MixedPolicy : public Policy {
 public:
  explicit MixedPolicy(const PolicyConfig& config) : config_(config) {}

  PolicyChoice choose(const PolicyView& view) const override { return {view.waiting, true, prompt_rows(view), kNever}; }

 private:
  // The most prompt rows whose step stays within the limit, never under one.
  int64_t prompt_rows(const PolicyView& view) const {
    const int64_t most = std::max<int64_t>(1, view.max_step_rows - view.decodes.rows);
    if (view.decodes.rows == 0) return most;  // nobody waits for the step to end
    if (!view.cost->fitted()) return std::min(most, kUnmeasuredPromptRows);
    const int64_t stretched = view.cost->predict_ns(view.decodes) / 100 * config_.decode_stretch_percent;
    const auto limit_ns =
        static_cast<int64_t>(static_cast<double>(std::max(stretched, config_.least_step_ns)) / margin(*view.cost));
    int64_t fits = 1;
    int64_t beyond = most + 1;
    while (fits + 1 < beyond) {
      const int64_t rows = fits + (beyond - fits) / 2;
      (view.cost->predict_ns(with_prompt_rows(view, rows)) <= limit_ns ? fits : beyond) = rows;
    }
    return fits;
  }

  // A tenth for what lies between steps, and twice what predictions miss by on average. On a machine that cannot be
  // predicted prompts still go on.
  static double margin(const StepTimeModel& cost) { return 1.1 + std::min(0.25, 2 * cost.relative_error()); }

  static StepShape with_prompt_rows(const PolicyView& view, int64_t rows) {
    StepShape shape = view.decodes;
    shape.rows += rows;
    shape.attention += attention_over_layers(view.groups, view.prompt_position, rows);
    return shape;
  }

  PolicyConfig config_;
};

}  // namespace

std::string_view policy_name(PolicyKind kind) {
  return std::ranges::find(kNames, kind, &std::pair<std::string_view, PolicyKind>::second)->first;
}

Result<PolicyKind> parse_policy(std::string_view name) {
  std::string known;
  for (const auto& [known_name, kind] : kNames) {
    if (known_name == name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  return invalid_argument("no batching policy \"" + std::string(name) + "\"; known are " + known);
}

Result<std::unique_ptr<Policy>> make_policy(const PolicyConfig& config) {
  if (config.batch_size < 1) return invalid_argument("the batch size of a policy must be at least 1");
  if (config.max_delay_ns < 0) return invalid_argument("the batching delay cannot be negative");
  if (config.decode_stretch_percent < 100) return invalid_argument("the decode stretch must be at least 100 %");
  if (!std::ranges::is_sorted(config.preferred_sizes) ||
      std::ranges::any_of(config.preferred_sizes, [&](int64_t size) { return size < 1 || size > config.batch_size; })) {
    return invalid_argument("preferred batch sizes must ascend from at least 1 to at most the batch size " +
                            std::to_string(config.batch_size));
  }
  std::unique_ptr<Policy> policy;
  switch (config.kind) {
    case PolicyKind::kStatic:
    case PolicyKind::kStaticPadded: {
      PolicyConfig one_size = config;
      one_size.preferred_sizes.clear();
      policy = std::make_unique<BatchPolicy>(std::move(one_size), config.kind == PolicyKind::kStaticPadded);
      break;
    }
    case PolicyKind::kDynamic:
      policy = std::make_unique<BatchPolicy>(config, false);
      break;
    case PolicyKind::kContinuous:
      policy = std::make_unique<ContinuousPolicy>();
      break;
    case PolicyKind::kMixed:
      policy = std::make_unique<MixedPolicy>(config);
      break;
  }
  return policy;
}

}  // namespace quire
