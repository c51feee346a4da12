#include "scheduler/simulation.h"

#include <algorithm>
#include <map>
#include <memory>

#include "scheduler/hash_chain_model.h"
#include "scheduler/simulation_tools.h"

namespace quire {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kMostSteps = 20'000;

struct Request {
  SequenceSpec spec;
  uint64_t seed = 0;
};

// What the engine would know of a living branch.
struct Branch {
  const Request* request = nullptr;
  int64_t index = 0;
  bool alive = false;  // the parent from the start, other branches from the fork on
  std::vector<int32_t> output;
  std::vector<uint64_t> prompt_states;
};

class Simulation {
 public:
  Simulation(uint64_t seed, SimulationTotals& totals, const SimulationFault& fault)
      : random_(seed), totals_(totals), fault_(fault) {
    draw_cache();
    draw_scheduler();
    draw_requests();
    model_ = std::make_unique<HashChainModel>(cache_config_);
    auto created = Scheduler::create(config_, cache_config_);
    require(created.ok(), "create: " + created.status().message());
    scheduler_ = std::move(*created);
  }

  void run() {
    int64_t steps = 0;
    while (!requests_.empty() || !branches_.empty()) {
      require(++steps < kMostSteps, "does not come to an end");
      now_ns_ += random_.between(0, 20) * kMillisecond;
      while (!requests_.empty() && random_.chance(arrival_rate_)) submit();
      if (random_.chance(cancel_rate_)) cancel(random_.between(0, 1000));
      if (due(SimulationFault::Kind::kCancelBeforePlanning)) cancel(fault_.victim);
      step();
    }
    const StepPlan& last = scheduler_->plan(now_ns_);
    require(last.empty() && last.wake_at_ns == kNever, "plans without work");
    for (int64_t g = 0; g < scheduler_->cache().groups(); ++g) {
      require(scheduler_->kv_usage(g).used_slots == 0 && scheduler_->kv_usage(g).live_slots == 0, "pages leaked");
    }
    add_totals();
  }

 private:
  void draw_cache() {
    cache_config_.page_tokens = random_.pick<int64_t>({1, 2, 4, 8, 16});
    cache_config_.max_sequence_tokens = random_.between(20, 110);
    cache_config_.hash_key = {static_cast<uint64_t>(random_.between(0, 1 << 30)), 1};
    cache_config_.fingerprint = "fake";
    cache_config_.layout = random_.chance(0.08) ? KvLayout::kContiguous : KvLayout::kPaged;
    cache_config_.prefix_caching = cache_config_.layout == KvLayout::kPaged && random_.chance(0.85);
    const int64_t kind = random_.between(0, 5);
    std::vector<int64_t> windows = {0};
    if (kind == 3) windows = {0, random_.between(1, 40)};
    if (kind == 4) windows = {random_.between(1, 40)};
    if (kind == 5) windows = {random_.between(1, 40), 0, random_.between(1, 40)};
    for (const int64_t window : windows) {
      const int64_t B = cache_config_.page_tokens;
      const int64_t whole = (cache_config_.max_sequence_tokens + B - 1) / B;
      int64_t least = whole;
      if (window > 0 && cache_config_.layout == KvLayout::kPaged) least = std::min(whole, (window - 1 + B - 1) / B + 1);
      const int64_t pages = random_.chance(0.3) ? least : least + random_.between(0, 3 * whole);
      cache_config_.groups.push_back({pages, window, random_.between(1, 3)});
    }
  }

  void draw_scheduler() {
    config_.max_seqs = random_.between(1, 8);
    config_.max_step_rows = config_.max_seqs + random_.pick<int64_t>({0, 1, 5, 20, 60});
    config_.queue.max_requests = random_.chance(0.2) ? 2 : 100;
    config_.queue.max_tokens = random_.chance(0.1) ? 60 : 100'000;
    config_.aging_ns = random_.pick<int64_t>({0, 30 * kMillisecond, 10'000 * kMillisecond});
    config_.policy.kind = random_.pick({PolicyKind::kStatic, PolicyKind::kStaticPadded, PolicyKind::kDynamic,
                                        PolicyKind::kContinuous, PolicyKind::kMixed, PolicyKind::kMixed});
    config_.policy.batch_size = random_.between(1, config_.max_seqs);
    config_.policy.max_delay_ns = random_.pick<int64_t>({0, 5 * kMillisecond, 500 * kMillisecond});
    for (int64_t size = 1; size <= config_.policy.batch_size; ++size) {
      if (random_.chance(0.3)) config_.policy.preferred_sizes.push_back(size);
    }
    config_.project_peak = random_.chance(0.5);
    arrival_rate_ = random_.pick({0.2, 0.5, 0.9});
    cancel_rate_ = random_.pick({0.0, 0.0, 0.02, 0.1});
    failure_rate_ = random_.pick({0.0, 0.0, 0.0, 0.03});
    draft_size_ = random_.pick<int64_t>({0, 0, 1, 3, 5});
  }

  void draw_requests() {
    std::vector<std::vector<int32_t>> prefixes(3);
    for (auto& prefix : prefixes) prefix = draw_tokens(random_.between(1, 70));
    const int64_t count = random_.between(1, 14);
    for (int64_t i = 0; i < count; ++i) {
      Request request;
      const auto& prefix = prefixes[static_cast<size_t>(random_.between(0, 2))];
      const auto cut = random_.between(1, static_cast<int64_t>(prefix.size()));
      request.spec.prompt.assign(prefix.begin(), prefix.begin() + cut);
      for (const int32_t token : draw_tokens(random_.between(0, 8))) request.spec.prompt.push_back(token);
      request.spec.max_tokens = random_.chance(0.05) ? 0 : random_.between(1, 40);
      request.spec.branches = random_.chance(0.25) ? random_.between(1, std::min<int64_t>(4, config_.max_seqs)) : 1;
      request.spec.priority = random_.between(-1, 1);
      request.spec.salt = random_.pick<uint64_t>({0, 0, 99});
      request.spec.prompt_logits = random_.chance(0.1);
      request.seed = static_cast<uint64_t>(random_.between(0, 4));
      requests_.push_back(std::move(request));
    }
  }

  std::vector<int32_t> draw_tokens(int64_t count) {
    std::vector<int32_t> tokens;
    while (static_cast<int64_t>(tokens.size()) < count) {
      tokens.push_back(static_cast<int32_t>(random_.between(0, kVocabulary - 1)));
    }
    return tokens;
  }

  static uint64_t salt_value(const Request& request) { return request.spec.salt; }
  static uint64_t branch_seed(const Branch& branch) {
    return branch.request->seed + 1000 * static_cast<uint64_t>(branch.index);
  }

  void submit() {
    auto request = std::make_unique<Request>(std::move(requests_.back()));
    requests_.pop_back();
    const int64_t size = static_cast<int64_t>(request->spec.prompt.size());
    const int64_t reach = size + std::max<int64_t>(0, request->spec.max_tokens - 1);
    require(scheduler_->fits(request->spec) == (reach <= cache_config_.max_sequence_tokens), "fits and does not");
    if (!scheduler_->fits(request->spec)) {
      ++totals_.rejected;
      return;
    }
    const auto id = scheduler_->submit(request->spec, now_ns_);
    check("submit");
    if (!id.ok()) {
      ++totals_.rejected;
      require(id.status().code() == StatusCode::kResourceExhausted, "rejected: " + id.status().message());
      requests_.insert(requests_.begin(), std::move(*request));  // comes again
      return;
    }
    const int64_t branches = request->spec.max_tokens == 0 ? 1 : request->spec.branches;
    for (int64_t j = 0; j < branches; ++j) branches_[*id + j] = {request.get(), j, j == 0, {}, {}};
    submitted_.push_back(std::move(request));
  }

  bool due(SimulationFault::Kind kind) const { return fault_.kind == kind && fault_.step == planned_; }

  void cancel(int64_t victim) {
    if (branches_.empty()) return;
    auto chosen = branches_.begin();
    std::advance(chosen, victim % static_cast<int64_t>(branches_.size()));
    const SequenceId id = chosen->first;
    const CancelResult result = scheduler_->cancel(id);
    require((result == CancelResult::kUnknown) == !chosen->second.alive, "cancel knows dead or unknown sequences");
    check("cancel");
    if (result != CancelResult::kDone) return;
    check_is_prefix(chosen->second);
    forget(id);
    ++totals_.cancelled;
  }

  // A parent takes the branches along that have not come to life.
  void forget(SequenceId id) {
    const Branch gone = branches_.at(id);
    branches_.erase(id);
    for (int64_t j = 1; gone.index == 0 && j < gone.request->spec.branches; ++j) {
      const auto child = branches_.find(id + j);
      if (child != branches_.end() && !child->second.alive) branches_.erase(child);
    }
  }

  void step() {
    const StepPlan& plan = scheduler_->plan(now_ns_);
    check("plan");
    if (plan.empty()) {
      const SchedulerGauges gauges = scheduler_->gauges();
      require(gauges.running == 0 && gauges.preempted == 0, "stands still with sequences started");
      require(gauges.waiting == 0 || plan.wake_at_ns != kNever, "stands still with sequences waiting");
      if (gauges.waiting > 0) {
        require(plan.wake_at_ns > now_ns_, "asks to be woken in the past");
        if (requests_.empty()) now_ns_ = plan.wake_at_ns;
      }
      return;
    }
    ++totals_.steps;
    require(plan.shape.rows <= config_.max_step_rows, "too many rows");
    if (random_.chance(0.2) && !requests_.empty()) submit();
    if (random_.chance(cancel_rate_)) cancel(random_.between(0, 1000));
    if (due(SimulationFault::Kind::kCancelInFlight)) cancel(fault_.victim);
    const bool fails = random_.chance(failure_rate_) || due(SimulationFault::Kind::kFailStep);
    ++planned_;
    if (fails) {
      model_->fail(plan);
      note_outcome(scheduler_->fail_step());
    } else {
      compute(plan);
    }
    check("commit");
    model_->spoil_unused(scheduler_->cache());
    for (auto& [id, branch] : branches_) {
      if (branch.alive && random_.chance(0.8)) draft(id, branch);
    }
  }

  void compute(const StepPlan& plan) {
    const auto salt_of = [&](SequenceId id) {
      const auto branch = branches_.find(id);
      return branch == branches_.end() ? 0 : salt_value(*branch->second.request);
    };
    const std::vector<uint64_t> states = model_->forward(plan, salt_of);
    std::vector<std::vector<int32_t>> tokens;
    std::vector<SampleResult> results;
    size_t next_state = 0;
    size_t next_token_row = 0;
    for (const PlanRow& row : plan.rows) {
      const uint64_t* logits = states.data() + next_state;
      if (row.samples > 0) sample(plan, row, logits, next_token_row, tokens, results);
      if (!row.padding && branches_.at(row.id).request->spec.prompt_logits) keep_prompt_states(row, logits);
      next_state += static_cast<size_t>(row.logit_rows);
      next_token_row += static_cast<size_t>(row.rows);
    }
    require(next_state == states.size(), "logit rows disagree");
    for (size_t i = 0; i < results.size(); ++i) results[i].tokens = tokens[i];
    const int64_t slowness = random_.chance(0.05) ? 50 : 1;
    note_outcome(scheduler_->commit(results, slowness * (5 + plan.shape.rows / 4) * kMillisecond));
  }

  // Samples as an engine does: goes on while the sampled token is the drafted one.
  void sample(const StepPlan& plan, const PlanRow& row, const uint64_t* logits, size_t first_token,
              std::vector<std::vector<int32_t>>& tokens, std::vector<SampleResult>& results) {
    for (int64_t j = 0; j < row.samples; ++j) {
      Branch& branch = branches_.at(row.id + j);
      const uint64_t* state = logits + row.logit_rows - row.draft_rows - 1;
      const size_t first_draft = first_token + static_cast<size_t>(row.rows - row.draft_rows);
      const int64_t size = static_cast<int64_t>(branch.request->spec.prompt.size() + branch.output.size());
      std::vector<int32_t>& run = tokens.emplace_back();
      for (int64_t d = 0; d <= row.draft_rows; ++d) {
        run.push_back(next_token(state[d], branch_seed(branch), size + d));
        if (run.back() == kStopToken || d == row.draft_rows) break;
        if (plan.tokens[first_draft + static_cast<size_t>(d)] != run.back()) break;
      }
      results.push_back({row.id + j, {}, run.back() == kStopToken});
      branch.output.insert(branch.output.end(), run.begin(), run.end());
    }
  }

  void keep_prompt_states(const PlanRow& row, const uint64_t* logits) {
    Branch& branch = branches_.at(row.id);
    const bool scored = branch.index > 0 || branch.prompt_states.size() == branch.request->spec.prompt.size();
    if (scored || row.logit_rows == 0) return;
    const int64_t first = row.first_position + row.rows - row.logit_rows;
    require(first == static_cast<int64_t>(branch.prompt_states.size()), "prompt logits with a gap or twice");
    branch.prompt_states.insert(branch.prompt_states.end(), logits, logits + row.logit_rows);
  }

  void note_outcome(const StepOutcome& outcome) {
    for (const SequenceId id : outcome.forked) {
      require(!branches_.at(id).alive, "forked twice");
      branches_.at(id).alive = true;
      ++totals_.forks;
    }
    for (const StepOutcome::Finished& finished : outcome.finished) {
      const auto found = branches_.find(finished.id);
      require(found != branches_.end() && found->second.alive, "a sequence ended twice or never began");
      const Branch& branch = found->second;
      const bool complete = finished.reason == FinishReason::kStopped || finished.reason == FinishReason::kLength;
      if (complete) {
        check_complete(branch, finished);
      } else {
        check_is_prefix(branch);
      }
      ++(complete ? totals_.finished : finished.reason == FinishReason::kFailed ? totals_.failed : totals_.cancelled);
      forget(finished.id);
    }
  }

  const std::vector<int32_t>& reference(const Branch& branch) {
    auto& output = references_[{branch.request, branch.index}];
    const SequenceSpec& spec = branch.request->spec;
    if (output.empty() && spec.max_tokens > 0) {
      output = reference_output(cache_config_.groups, spec.prompt, spec.max_tokens, branch_seed(branch),
                                salt_value(*branch.request));
    }
    return output;
  }

  void check_complete(const Branch& branch, const StepOutcome::Finished& finished) {
    const SequenceSpec& spec = branch.request->spec;
    require(branch.output == reference(branch), "the output differs from the request alone");
    const bool stopped = !branch.output.empty() && branch.output.back() == kStopToken;
    require(stopped == (finished.reason == FinishReason::kStopped), "ended for the wrong reason");
    require(finished.facts.output_tokens == static_cast<int64_t>(branch.output.size()), "output miscounted");
    require(finished.facts.cached_tokens < static_cast<int64_t>(spec.prompt.size()), "all of a prompt was cached");
    if (!spec.prompt_logits || branch.index > 0) return;
    require(branch.prompt_states == reference_states(cache_config_.groups, spec.prompt, salt_value(*branch.request)),
            "prompt logits differ from the request alone");
  }

  void check_is_prefix(const Branch& branch) {
    const std::vector<int32_t>& whole = reference(branch);
    require(
        branch.output.size() <= whole.size() && std::equal(branch.output.begin(), branch.output.end(), whole.begin()),
        "the output of an aborted request is not a prefix");
  }

  void draft(SequenceId id, const Branch& branch) {
    std::vector<int32_t> tokens;
    const std::vector<int32_t>& whole = reference(branch);
    for (size_t i = branch.output.size(); static_cast<int64_t>(tokens.size()) < draft_size_; ++i) {
      const bool right = i < whole.size() && random_.chance(0.7);
      tokens.push_back(right ? whole[i] : static_cast<int32_t>(random_.between(0, kVocabulary - 1)));
    }
    if (!tokens.empty()) scheduler_->set_draft(id, tokens);
  }

  void check(const char* after) {
    const Status status = scheduler_->check_invariants();
    require(status.ok(), std::string("after ") + after + ": " + status.message());
  }

  void add_totals() {
    ++totals_.runs;
    for (int64_t g = 0; g < scheduler_->cache().groups(); ++g) totals_.evictions += scheduler_->kv_usage(g).evictions;
    const SchedulerCounters& counters = scheduler_->counters();
    totals_.counters.preemptions += counters.preemptions;
    totals_.counters.copied_pages += counters.copied_pages;
    totals_.counters.prefix_hit_tokens += counters.prefix_hit_tokens;
    totals_.counters.resumed_hit_tokens += counters.resumed_hit_tokens;
    totals_.counters.recomputed_tokens += counters.recomputed_tokens;
    totals_.counters.accepted_tokens += counters.accepted_tokens;
    totals_.counters.wasted_rows += counters.wasted_rows;
  }

  Random random_;
  SimulationTotals& totals_;
  SimulationFault fault_;
  int64_t planned_ = 0;  // steps so far
  KvCacheConfig cache_config_;
  SchedulerConfig config_;
  double arrival_rate_ = 0;
  double cancel_rate_ = 0;
  double failure_rate_ = 0;
  int64_t draft_size_ = 0;
  int64_t now_ns_ = 0;
  std::unique_ptr<HashChainModel> model_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<Request> requests_;  // still to arrive
  std::vector<std::unique_ptr<Request>> submitted_;
  std::map<SequenceId, Branch> branches_;
  std::map<std::pair<const Request*, int64_t>, std::vector<int32_t>> references_;
};

}  // namespace

std::string simulate(uint64_t seed, SimulationTotals& totals, const SimulationFault& fault) {
  try {
    Simulation(seed, totals, fault).run();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace quire
