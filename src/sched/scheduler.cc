#include "sched/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace quire {
namespace {

std::string counted(int64_t count, const char* what) { return std::to_string(count) + " " + what; }

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::create(const SchedulerConfig& config, KvCacheConfig cache_config) {
  if (config.max_seqs < 1) return invalid_argument("the scheduler needs room for at least one running sequence");
  if (config.max_step_rows < config.max_seqs) {
    return invalid_argument("a step of " + counted(config.max_step_rows, "rows") + " cannot decode " +
                            counted(config.max_seqs, "sequences") + ": allow more rows or fewer sequences");
  }
  if (config.queue.max_requests < 1 || config.queue.max_tokens < 1 || config.aging_ns < 0 ||
      config.aging_ns > kNever / 4 / kMaxPriority) {
    return invalid_argument("queue limits must be above 0, and aging between 0 and 73 years");
  }
  QUIRE_ASSIGN_OR_RETURN(auto policy, make_policy(config.policy));
  if (policy->forms_batches() && config.policy.batch_size > config.max_seqs) {
    return invalid_argument("batches of " + std::to_string(config.policy.batch_size) + " cannot run with " +
                            counted(config.max_seqs, "sequences at once") + ": lower one or raise the other");
  }
  QUIRE_ASSIGN_OR_RETURN(auto cache, KvCache::create(std::move(cache_config)));
  return std::unique_ptr<Scheduler>(new Scheduler(config, std::move(policy), std::move(cache)));
}

Scheduler::Scheduler(const SchedulerConfig& config, std::unique_ptr<Policy> policy, KvCache cache)
    : config_(config), policy_(std::move(policy)), cache_(std::move(cache)) {}

bool Scheduler::fits(const SequenceSpec& spec) const {
  const auto prompt = static_cast<int64_t>(spec.prompt.size());
  if (prompt < 1 || spec.max_tokens < 0 || spec.branches < 1 || spec.branches > config_.max_seqs) return false;
  if (spec.priority < -kMaxPriority || spec.priority > kMaxPriority) return false;
  // The last token is never computed, so it needs no slot.
  return std::max<int64_t>(0, spec.max_tokens - 1) <= cache_.most_tokens() - prompt;
}

Result<SequenceId> Scheduler::submit(SequenceSpec spec, int64_t now_ns) {
  QUIRE_CHECK(fits(spec));
  const int64_t prompt = static_cast<int64_t>(spec.prompt.size());
  QUIRE_RETURN_IF_ERROR(config_.queue.admit(gauges().queue(), prompt));
  auto created = std::make_unique<Sequence>();
  created->id = next_id_;
  created->prompt_size = prompt;
  created->max_tokens = spec.max_tokens;
  created->branches = spec.max_tokens == 0 ? 1 : spec.branches;
  created->rank_ns = spec.priority * config_.aging_ns + now_ns;
  created->prompt_logits = spec.prompt_logits;
  created->pages = cache_.new_sequence(std::to_string(spec.salt));
  created->facts.submitted_ns = now_ns;
  created->facts.prompt_tokens = prompt;
  created->tokens = std::move(spec.prompt);
  const SequenceId id = created->id;
  const std::pair<int64_t, SequenceId> place(created->rank_ns, id);
  sequences_.emplace(id, std::move(created));
  try {
    waiting_.insert(place);
    submissions_.emplace_back(now_ns, id);
  } catch (...) {  // out of memory: it has never come
    waiting_.erase(place);
    sequences_.erase(id);
    throw;
  }
  queued_tokens_ += prompt;
  next_id_ += spec.branches;
  return id;
}

CancelResult Scheduler::cancel(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end() || found->second->state == Sequence::State::kPadding) return CancelResult::kUnknown;
  Sequence& cancelled = *found->second;
  if (in_flight_ && cancelled.rows > 0) {
    cancelled.cancelled = true;
    return CancelResult::kAtCommit;
  }
  cache_.release(cancelled.pages);
  if (waiting_.erase({cancelled.rank_ns, id}) > 0) queued_tokens_ -= cancelled.prompt_size;
  preempted_.erase({cancelled.rank_ns, id});
  std::erase(running_, &cancelled);
  sequences_.erase(found);
  if (running_.empty() && !in_flight_) drop_padding();
  return CancelResult::kDone;
}

void Scheduler::set_draft(SequenceId id, std::span<const int32_t> draft) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Sequence& drafted = *found->second;
  QUIRE_CHECK(!in_flight_);
  if (drafted.state != Sequence::State::kRunning || drafted.pending() != 1 || drafted.output() == 0) return;
  const int64_t room = drafted.max_tokens - drafted.output() - 1;
  drafted.draft.assign(draft.begin(), draft.begin() + std::min<int64_t>(room, static_cast<int64_t>(draft.size())));
}

const Sequence* Scheduler::find(SequenceId id) const {
  const auto found = sequences_.find(id);
  if (found == sequences_.end() || found->second->state == Sequence::State::kPadding) return nullptr;
  return found->second.get();
}

SchedulerGauges Scheduler::gauges() const {
  return {.running = static_cast<int64_t>(running_.size()),
          .waiting = static_cast<int64_t>(waiting_.size()),
          .preempted = static_cast<int64_t>(preempted_.size()),
          .padding = static_cast<int64_t>(padding_.size()),
          .queued_tokens = queued_tokens_};
}

Status Scheduler::check_invariants() const {
  std::vector<const SequencePages*> living;
  for (const auto& [id, sequence] : sequences_) {
    living.push_back(&sequence->pages);
    const std::string name = "sequence " + std::to_string(id) + ": ";
    const bool queued = waiting_.contains({sequence->rank_ns, id}) || preempted_.contains({sequence->rank_ns, id});
    if (queued != (sequence->state == Sequence::State::kWaiting)) return corrupt(name + "is not where its state says");
    if (queued && (sequence->computed != 0 || !sequence->draft.empty())) return corrupt(name + "waits with progress");
    for (const SequencePages::Group& group : sequence->pages.groups) {
      const int64_t covered = static_cast<int64_t>(group.table.size()) * cache_.config().page_tokens;
      if (queued && covered != 0) return corrupt(name + "waits with pages");
      if (!queued && covered < sequence->computed + sequence->rows) return corrupt(name + "lacks pages");
    }
    if (sequence->state == Sequence::State::kRunning && sequence->computed >= sequence->size()) {
      return corrupt(name + "runs with nothing to compute");
    }
  }
  if (!std::ranges::is_sorted(running_, {}, [](const Sequence* s) { return std::pair(s->rank_ns, s->id); })) {
    return corrupt("running sequences are out of order");
  }
  if (running_.size() + waiting_.size() + preempted_.size() + padding_.size() != sequences_.size()) {
    return corrupt("a sequence is in two places or none");
  }
  if (static_cast<int64_t>(running_.size() + padding_.size()) > config_.max_seqs) return corrupt("too many run");
  QUIRE_RETURN_IF_ERROR(cache_.check(living));
  if (!in_flight_) return {};
  int64_t rows = 0;
  std::set<SequenceId> planned;
  for (const PlanRow& row : plan_.rows) {
    const Sequence& sequence = *sequences_.at(row.id);
    rows += row.rows;
    if (!planned.insert(row.id).second) return corrupt("a sequence is planned twice");
    for (int64_t g = 0; g < cache_.groups(); ++g) {
      const std::vector<PageId>& table = sequence.pages.groups[static_cast<size_t>(g)].table;
      for (int64_t position = row.first_position; position < row.first_position + row.rows; ++position) {
        const PageId page = table[static_cast<size_t>(position / cache_.config().page_tokens)];
        if (page == kNoPage || cache_.pool(g).references(page) != 1 ||
            (cache_.config().prefix_caching && cache_.index(g).published(page))) {
          return corrupt("sequence " + std::to_string(row.id) + " would write to a page that others read");
        }
      }
    }
  }
  if (rows > config_.max_step_rows) return corrupt("the plan has more rows than a step may");
  if (rows != static_cast<int64_t>(plan_.tokens.size())) return corrupt("rows and tokens of the plan disagree");
  return {};
}

}  // namespace quire
