// Scheduler, the planning half: who gets rows and pages in the next step.
#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace quire {
namespace {

bool decodes(const Sequence& sequence) { return sequence.pending() == 1; }

// At most half of what is left to any one prompt, while others still want some.
int64_t share_of(int64_t rows_left, int64_t claimants) { return claimants > 1 ? (rows_left + 1) / 2 : rows_left; }

}  // namespace

const StepPlan& Scheduler::plan(int64_t now_ns) {
  QUIRE_CHECK(!in_flight_);
  plan_.clear();
  const PolicyView seen = view(now_ns);
  const PolicyChoice choice = policy_->choose(seen);
  const int64_t waiting_allowed = std::min<int64_t>(choice.start, static_cast<int64_t>(waiting_.size()));
  const int64_t candidates = std::min(free_slots(), waiting_allowed + static_cast<int64_t>(preempted_.size()));
  const bool prompt_work = candidates > 0 || !std::ranges::all_of(running_, [](auto* s) { return decodes(*s); });
  const bool prompts = choice.mix || prompt_work;
  const bool with_decodes = choice.mix || !prompt_work;

  deal_rows({.decodes = with_decodes,
             .prompts = prompts,
             .candidates = candidates,
             .draft_rows = choice.draft_rows,
             .prompt_rows = choice.prompt_rows});
  const bool all_kept = reserve_running();
  granted_ = 0;
  if (prompts && all_kept) {
    const size_t waited = waiting_.size();
    const bool out_of_rows = start_sequences(waiting_allowed, now_ns);
    if (out_of_rows) granted_ = waiting_allowed - static_cast<int64_t>(waited - waiting_.size());
    deal_leftover();
  }
  if (!with_decodes && rows_left_ == config_.max_step_rows) {  // no prompt found pages: do not stand still
    deal_rows({.decodes = true, .draft_rows = choice.draft_rows});
    reserve_running();
  }
  if (policy_->pads()) pad();
  write_plan();
  in_flight_ = !plan_.empty();
  if (!in_flight_) plan_.wake_at_ns = choice.wake_at_ns;
  return plan_;
}

int64_t Scheduler::free_slots() const {
  return config_.max_seqs - static_cast<int64_t>(running_.size() + padding_.size());
}

PolicyView Scheduler::view(int64_t now_ns) {
  PolicyView view;
  view.now_ns = now_ns;
  view.max_step_rows = config_.max_step_rows;
  view.waiting = static_cast<int64_t>(waiting_.size());
  view.granted = std::min(granted_, view.waiting);
  view.started = static_cast<int64_t>(running_.size() + preempted_.size() + padding_.size());
  view.cost = &step_times_;
  view.groups = cache_.config().groups;
  while (!submissions_.empty()) {
    const auto& [submitted_ns, id] = submissions_.front();
    const auto found = sequences_.find(id);
    view.oldest_waiting_ns = submitted_ns;
    if (found != sequences_.end() && !found->second->started()) break;
    submissions_.pop_front();
  }
  bool first_prompt = true;
  for (const Sequence* sequence : running_) {
    if (decodes(*sequence)) {
      ++view.decodes.rows;
      view.decodes.attention += attention_over_layers(view.groups, sequence->computed, 1);
      const auto drafts = static_cast<int64_t>(sequence->draft.size());
      view.drafts.rows += drafts;
      view.drafts.attention += attention_over_layers(view.groups, sequence->computed + 1, drafts);
    } else if (first_prompt) {
      view.prompt_position = sequence->computed;
      first_prompt = false;
    }
  }
  view.decodes.logit_rows = view.decodes.rows;
  view.drafts.logit_rows = view.drafts.rows;
  return view;
}

void Scheduler::deal_rows(const Deal& deal) {
  rows_left_ = config_.max_step_rows;
  int64_t claimants = deal.prompts ? deal.candidates : 0;
  for (Sequence* sequence : running_) {
    sequence->rows = deal.decodes && decodes(*sequence);
    rows_left_ -= sequence->rows;
    claimants += deal.prompts && !decodes(*sequence);
  }
  if (deal.decodes) {
    int64_t draft_rows = std::min(deal.draft_rows, rows_left_ - int64_t{claimants > 0});  // a prompt goes on
    for (Sequence* sequence : running_) {
      const int64_t drafts = std::min(static_cast<int64_t>(sequence->draft.size()), draft_rows);
      if (drafts <= 0) continue;
      sequence->rows += drafts;
      draft_rows -= drafts;
      rows_left_ -= drafts;
    }
  }
  prompt_rows_left_ = deal.prompts ? std::min(rows_left_, deal.prompt_rows) : 0;
  for (Sequence* sequence : running_) {
    if (!deal.prompts || decodes(*sequence)) continue;
    sequence->rows = std::min(sequence->pending(), share_of(prompt_rows_left_, claimants--));
    prompt_rows_left_ -= sequence->rows;
    rows_left_ -= sequence->rows;
  }
}

void Scheduler::set_rows(Sequence& dealt, int64_t rows) {
  rows_left_ += dealt.rows - rows;
  if (!decodes(dealt)) prompt_rows_left_ += dealt.rows - rows;
  dealt.rows = rows;
}

// Returns whether every sequence kept its pages. Fewer rows are tried before anybody is preempted: drafts go first, and
// chunks of prompts shrink.
bool Scheduler::reserve_running() {
  bool all_kept = true;
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.rows == 0 || reserve(sequence)) continue;
    int64_t rows = cache_.reservable_rows(sequence.pages, sequence.computed);
    while (rows <= 0) {
      if (!padding_.empty()) {
        drop_padding();
      } else {
        Sequence& victim = *running_.back();
        all_kept = false;
        preempt(victim);
        if (&victim == &sequence) return all_kept;
      }
      rows = cache_.reservable_rows(sequence.pages, sequence.computed);
    }
    set_rows(sequence, std::min(sequence.rows, rows));
    QUIRE_CHECK(reserve(sequence));
  }
  return all_kept;
}

bool Scheduler::reserve(Sequence& planned) {
  return cache_.reserve(planned.pages, planned.computed, planned.computed + planned.rows, plan_.moves);
}

void Scheduler::preempt(Sequence& victim) {
  set_rows(victim, 0);
  plan_.preempted.push_back({victim.id, victim.computed});
  ++victim.facts.preemptions;
  ++counters_.preemptions;
  std::erase(running_, &victim);
  give_up_pages(victim);
}

// Returns true when it ended for lack of rows, so that more may start in the next step.
bool Scheduler::start_sequences(int64_t waiting_allowed, int64_t now_ns) {
  while (waiting_allowed > 0 || !preempted_.empty()) {
    if (free_slots() <= 0) return false;
    if (prompt_rows_left_ <= 0) return true;
    const bool from_waiting = waiting_allowed > 0 && (preempted_.empty() || *waiting_.begin() < *preempted_.begin());
    const int64_t claimants = std::min(free_slots(), waiting_allowed + static_cast<int64_t>(preempted_.size()));
    Sequence& candidate = sequence((from_waiting ? waiting_ : preempted_).begin()->second);
    if (!start(candidate, share_of(prompt_rows_left_, claimants), now_ns)) return false;
    waiting_allowed -= from_waiting;
  }
  return false;
}

bool Scheduler::start(Sequence& candidate, int64_t rows_allowed, int64_t now_ns) {
  const bool unscored = candidate.prompt_logits && candidate.scored < candidate.prompt_size;
  const int64_t limit = unscored ? candidate.scored : candidate.size() - 1;
  // Looked up afresh each time: what an earlier step found may have been written again.
  const PrefixMatch match = cache_.match(candidate.pages, candidate.tokens, limit);
  if (!will_fit(candidate, match)) return false;
  MatchExplanation explanation = cache_.explain(candidate.pages, candidate.tokens, match);
  if (unscored && match.limit == 0) explanation.end = MatchEnd::kDisabled;
  const int64_t rows = std::min({candidate.size() - match.tokens, rows_allowed, cache_.most_rows(match.tokens)});
  if (!cache_.admit(candidate.pages, match, match.tokens + rows)) return false;
  candidate.rows = rows;
  rows_left_ -= rows;
  prompt_rows_left_ -= rows;
  record_start(candidate, match, explanation, now_ns);
  insert_running(candidate);
  return true;
}

// Alone, everything that was accepted fits, so something always runs. A contiguous reservation is its own gate.
bool Scheduler::will_fit(const Sequence& candidate, const PrefixMatch& match) const {
  if (!config_.project_peak || running_.empty() || cache_.config().layout == KvLayout::kContiguous) return true;
  const auto expected = [this](const Sequence& s) { return lengths_.expect(s.output(), s.max_tokens - s.output()); };
  PeakProjection projection(cache_);
  for (const Sequence* sequence : running_) projection.add(*sequence, expected(*sequence));
  return projection.fits(candidate, match, expected(candidate));
}

void Scheduler::record_start(Sequence& started, const PrefixMatch& match, const MatchExplanation& explanation,
                             int64_t now_ns) {
  const bool resumed = preempted_.erase({started.rank_ns, started.id}) > 0;
  SequenceFacts& facts = started.facts;
  if (!resumed) counters_.prefix_query_tokens += started.size();
  (resumed ? counters_.resumed_hit_tokens : counters_.prefix_hit_tokens) += match.tokens;
  if (resumed) {
    const int64_t again = std::max<int64_t>(0, started.lost - match.tokens);
    facts.recomputed_tokens += again;
    counters_.recomputed_tokens += again;
    started.lost = 0;
  } else {
    waiting_.erase({started.rank_ns, started.id});
    queued_tokens_ -= started.prompt_size;
    facts.started_ns = now_ns;
    facts.cached_tokens = match.tokens;
    facts.match = explanation;
  }
  started.computed = match.tokens;
  plan_.admitted.push_back({started.id, match.tokens, explanation, resumed});
}

// Rows that were kept for sequences which then could not start go to the prompts that did.
void Scheduler::deal_leftover() {
  for (Sequence* sequence : running_) {
    if (prompt_rows_left_ <= 0) return;
    if (sequence->rows == 0 || sequence->pending() <= sequence->rows) continue;
    const int64_t most = std::min({sequence->pending(), sequence->rows + prompt_rows_left_,
                                   cache_.reservable_rows(sequence->pages, sequence->computed)});
    if (most <= sequence->rows) continue;
    set_rows(*sequence, most);
    QUIRE_CHECK(reserve(*sequence));
  }
}

// Finished sequences of a padded batch compute their last token over and over, as long as the others decode.
void Scheduler::pad() {
  const bool decoding = std::ranges::any_of(running_, [](auto* s) { return s->rows > 0 && decodes(*s); });
  for (Sequence* sequence : padding_) {
    sequence->rows = decoding && rows_left_ > 0;
    if (sequence->rows > 0 && !reserve(*sequence)) sequence->rows = 0;
    rows_left_ -= sequence->rows;
  }
}

void Scheduler::write_plan() {
  planned_.clear();
  for (const auto* sequences : {&running_, &padding_}) {
    for (Sequence* sequence : *sequences) {
      if (sequence->rows == 0) continue;
      const int64_t drafts = std::max<int64_t>(0, sequence->rows - sequence->pending());
      sequence->draft.resize(static_cast<size_t>(drafts));
      write_row(*sequence);
    }
  }
  write_page_tables();
  counters_.copied_pages += static_cast<int64_t>(plan_.moves.size());
}

void Scheduler::write_page_tables() {
  plan_.groups = static_cast<int32_t>(cache_.groups());
  plan_.page_offsets.push_back(0);
  for (const Sequence* planned : planned_) {
    const auto pages = static_cast<std::ptrdiff_t>(cache_.pages_for(planned->computed + planned->rows));
    for (const SequencePages::Group& group : planned->pages.groups) {
      plan_.pages.insert(plan_.pages.end(), group.table.begin(), group.table.begin() + pages);
      plan_.page_offsets.push_back(static_cast<int64_t>(plan_.pages.size()));
    }
  }
}

void Scheduler::write_row(Sequence& planned) {
  planned_.push_back(&planned);
  const int64_t end = planned.computed + planned.rows;
  const bool complete = end >= planned.size();
  const bool unscored = planned.prompt_logits && planned.scored < planned.prompt_size;
  const int64_t first_logits = std::max(planned.computed, unscored ? planned.scored : planned.size() - 1);
  PlanRow row;
  row.id = planned.id;
  row.first_position = planned.computed;
  row.rows = static_cast<int32_t>(planned.rows);
  row.draft_rows = static_cast<int32_t>(planned.draft.size());
  row.logit_rows = static_cast<int32_t>(std::max<int64_t>(0, end - first_logits));
  row.padding = planned.state == Sequence::State::kPadding;
  row.samples = complete && planned.max_tokens > 0 && !row.padding ? static_cast<int32_t>(planned.branches) : 0;
  if (planned.max_tokens == 0 && !planned.prompt_logits) row.logit_rows = 0;
  plan_.rows.push_back(row);
  const auto first = planned.tokens.begin() + planned.computed;
  plan_.tokens.insert(plan_.tokens.end(), first, first + (planned.rows - row.draft_rows));
  plan_.tokens.insert(plan_.tokens.end(), planned.draft.begin(), planned.draft.end());
  plan_.shape.rows += planned.rows;
  plan_.shape.logit_rows += row.logit_rows;
  plan_.shape.attention += attention_over_layers(cache_.config().groups, planned.computed, planned.rows);
}

}  // namespace quire
