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
    choice.draft_rows = view.drafts.rows;
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
    return {.start = view.waiting, .mix = false, .draft_rows = view.drafts.rows, .prompt_rows = view.max_step_rows};
  }
};

class MixedPolicy : public Policy {
 public:
  explicit MixedPolicy(const PolicyConfig& config) : config_(config) {}

  PolicyChoice choose(const PolicyView& view) const override {
    PolicyChoice choice{.start = view.waiting, .mix = true, .draft_rows = draft_rows(view)};
    choice.prompt_rows = prompt_rows(view, with_draft_rows(view, choice.draft_rows));
    return choice;
  }

 private:
  // The most prompt rows whose step stays within the limit, never under one. `others`: the rest of the step.
  int64_t prompt_rows(const PolicyView& view, const StepShape& others) const {
    const int64_t most = std::max<int64_t>(1, view.max_step_rows - others.rows);
    if (others.rows == 0) return most;  // nobody waits for the step to end
    if (!view.cost->fitted()) return std::min(most, kUnmeasuredPromptRows);
    return most_within(1, most, limit_ns(view), [&](int64_t rows) {
      StepShape shape = others;
      shape.rows += rows;
      shape.attention += attention_over_layers(view.groups, view.prompt_position, rows);
      return view.cost->predict_ns(shape);
    });
  }

  // The most draft rows whose step stays within the limit.
  int64_t draft_rows(const PolicyView& view) const {
    if (view.drafts.rows == 0 || !view.cost->fitted()) return view.drafts.rows;
    return most_within(0, view.drafts.rows, limit_ns(view),
                       [&](int64_t rows) { return view.cost->predict_ns(with_draft_rows(view, rows)); });
  }

  // The largest of `least` to `most` whose time is within the limit; `least` whatever it takes.
  template <typename TimeOf>
  static int64_t most_within(int64_t least, int64_t most, int64_t limit_ns, const TimeOf& time_of) {
    int64_t fits = least;
    int64_t beyond = most + 1;
    while (fits + 1 < beyond) {
      const int64_t rows = fits + (beyond - fits) / 2;
      (time_of(rows) <= limit_ns ? fits : beyond) = rows;
    }
    return fits;
  }

  int64_t limit_ns(const PolicyView& view) const {
    const int64_t stretched = view.cost->predict_ns(view.decodes) / 100 * config_.decode_stretch_percent;
    return static_cast<int64_t>(static_cast<double>(std::max(stretched, config_.least_step_ns)) / margin(*view.cost));
  }

  // A tenth for what lies between steps, and twice what predictions miss by on average. On a machine that cannot be
  // predicted prompts still go on.
  static double margin(const StepTimeModel& cost) { return 1.1 + std::min(0.25, 2 * cost.relative_error()); }

  // The decodes with `rows` of their drafts, each of which costs the average one.
  static StepShape with_draft_rows(const PolicyView& view, int64_t rows) {
    StepShape shape = view.decodes;
    if (rows == 0) return shape;
    shape.rows += rows;
    shape.logit_rows += rows;
    shape.attention += view.drafts.attention * rows / view.drafts.rows;
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
