// Scheduler, the other half: what a computed step changes.
#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace quire {

const StepOutcome& Scheduler::commit(std::span<const SampleResult> results, int64_t step_ns) {
  QUIRE_CHECK(in_flight_);
  outcome_ = {};
  if (step_ns > 0) step_times_.observe(plan_.shape, step_ns);
  size_t next = 0;
  for (size_t i = 0; i < planned_.size(); ++i) {
    const PlanRow& row = plan_.rows[i];
    const size_t samples = static_cast<size_t>(row.samples);
    QUIRE_CHECK(next + samples <= results.size());
    commit_row(row, *planned_[i], results.subspan(next, samples));
    next += samples;
  }
  QUIRE_CHECK(next == results.size());
  end_step();
  return outcome_;
}

const StepOutcome& Scheduler::fail_step() {
  QUIRE_CHECK(in_flight_);
  outcome_ = {};
  for (size_t i = 0; i < planned_.size(); ++i) {
    Sequence& failed = *planned_[i];
    failed.rows = 0;
    if (!plan_.rows[i].padding) finish(failed, failed.cancelled ? FinishReason::kCancelled : FinishReason::kFailed);
  }
  end_step();
  return outcome_;
}

void Scheduler::commit_row(const PlanRow& row, Sequence& committed, std::span<const SampleResult> results) {
  committed.rows = 0;
  if (row.padding) {
    counters_.wasted_rows += row.rows;
    return;
  }
  if (committed.cancelled) {
    finish(committed, FinishReason::kCancelled);
    return;
  }
  int64_t from = committed.computed;
  committed.scored = std::min(committed.prompt_size, std::max(committed.scored, from + row.rows));
  if (results.empty()) {
    committed.computed += row.rows;
    cache_.commit(committed.pages, committed.tokens, from, committed.computed);
    if (committed.pending() == 0) finish(committed, FinishReason::kLength);
    return;
  }
  if (results.size() > 1) {
    cache_.commit(committed.pages, committed.tokens, from, committed.size());
    from = committed.size();
    fork_branches(committed, results);
    committed.branches = 1;
  }
  take_result(committed, results.front(), from);
}

// Every branch but the first, which the parent itself goes on with.
void Scheduler::fork_branches(const Sequence& parent, std::span<const SampleResult> results) {
  const bool shares = cache_.config().layout == KvLayout::kPaged;
  for (size_t branch = 1; branch < results.size(); ++branch) {
    auto created = std::make_unique<Sequence>(parent);
    Sequence& child = *created;
    child.id = parent.id + static_cast<int64_t>(branch);
    child.branches = 1;
    child.pages = cache_.fork(parent.pages, parent.size());
    child.computed = parent.size();
    sequences_.emplace(child.id, std::move(created));
    outcome_.forked.push_back(child.id);
    if (free_slots() > 0 && shares) {
      insert_running(child);
    } else {
      give_up_pages(child);
    }
    take_result(child, results[branch], child.computed);
  }
}

// `computed` ends one behind the tokens, whatever was drafted: the rows of rejected drafts are forgotten by that alone.
void Scheduler::take_result(Sequence& to, const SampleResult& result, int64_t computed_from) {
  const size_t accepted = result.tokens.size() - 1;
  QUIRE_CHECK(result.id == to.id && !result.tokens.empty() && accepted <= to.draft.size());
  QUIRE_CHECK(
      std::equal(to.draft.begin(), to.draft.begin() + static_cast<std::ptrdiff_t>(accepted), result.tokens.begin()));
  counters_.drafted_tokens += static_cast<int64_t>(to.draft.size());
  counters_.accepted_tokens += static_cast<int64_t>(accepted);
  to.draft.clear();
  to.tokens.insert(to.tokens.end(), result.tokens.begin(), result.tokens.end());
  if (to.state == Sequence::State::kRunning) {
    to.computed = to.size() - 1;
    cache_.commit(to.pages, to.tokens, computed_from, to.computed);
  }
  if (result.stopped) {
    finish(to, FinishReason::kStopped);
  } else if (to.output() >= to.max_tokens) {
    finish(to, FinishReason::kLength);
  }
}

void Scheduler::finish(Sequence& finished, FinishReason reason) {
  finished.facts.output_tokens = finished.output();
  outcome_.finished.push_back({finished.id, reason, finished.facts});
  const bool complete = reason == FinishReason::kStopped || reason == FinishReason::kLength;
  if (complete && finished.max_tokens > 0) lengths_.add(finished.output());
  preempted_.erase({finished.rank_ns, finished.id});
  const bool ran = std::erase(running_, &finished) > 0;
  if (complete && ran && finished.pending() > 0 && policy_->pads()) {
    finished.state = Sequence::State::kPadding;
    padding_.push_back(&finished);
    return;
  }
  cache_.release(finished.pages);
  sequences_.erase(finished.id);
}

void Scheduler::end_step() {
  in_flight_ = false;
  planned_.clear();
  ++counters_.steps;
  if (running_.empty()) drop_padding();
}

void Scheduler::insert_running(Sequence& started) {
  started.state = Sequence::State::kRunning;
  const auto rank = [](const Sequence* sequence) { return std::pair(sequence->rank_ns, sequence->id); };
  running_.insert(std::ranges::upper_bound(running_, rank(&started), {}, rank), &started);
}

// The tokens stay; whatever of their K and V is still in the cache by then is found again.
void Scheduler::give_up_pages(Sequence& waits) {
  cache_.release(waits.pages);
  waits.lost = waits.computed;
  waits.computed = 0;
  waits.draft.clear();
  waits.state = Sequence::State::kWaiting;
  preempted_.emplace(waits.rank_ns, waits.id);
}

void Scheduler::drop_padding() {
  for (Sequence* padded : padding_) {
    cache_.release(padded->pages);
    sequences_.erase(padded->id);
  }
  padding_.clear();
}

}  // namespace quire
