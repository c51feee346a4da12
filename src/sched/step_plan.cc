#include "sched/step_plan.h"

#include <algorithm>

#include "base/byte_stream.h"

namespace quire {
namespace {

constexpr size_t kRowBytes = 33;   // of a PlanRow
constexpr size_t kMoveBytes = 17;  // of a PageMove

Status contradiction(const std::string& what) { return corrupt("the step plan is damaged: " + what); }

void put_row(ByteWriter& out, const PlanRow& row) {
  out.put(row.id);
  out.put(row.first_position);
  out.put(row.rows);
  out.put(row.draft_rows);
  out.put(row.logit_rows);
  out.put(row.samples);
  out.put(row.padding);
}

PlanRow get_row(ByteSource& in) {
  PlanRow row;
  row.id = in.get<SequenceId>();
  row.first_position = in.get<int64_t>();
  row.rows = in.get<int32_t>();
  row.draft_rows = in.get<int32_t>();
  row.logit_rows = in.get<int32_t>();
  row.samples = in.get<int32_t>();
  row.padding = in.get_choice(true);
  return row;
}

void put_move(ByteWriter& out, const PageMove& move) {
  out.put(move.kind);
  out.put(move.group);
  out.put(move.from);
  out.put(move.to);
  out.put(move.slots);
}

PageMove get_move(ByteSource& in) {
  PageMove move;
  move.kind = in.get_choice(PageMove::Kind::kLoad);
  move.group = in.get<int32_t>();
  move.from = in.get<PageId>();
  move.to = in.get<PageId>();
  move.slots = in.get<int32_t>();
  return move;
}

// Lists against each other; what the numbers mean for a model comes later.
Status check_shape(const StepPlan& plan) {
  if (plan.groups < 1) return contradiction("it has no KV group");
  if (plan.page_offsets.size() != plan.rows.size() * static_cast<size_t>(plan.groups) + 1) {
    return contradiction("its page tables do not match its rows");
  }
  if (plan.page_offsets.front() != 0 || !std::ranges::is_sorted(plan.page_offsets) ||
      plan.page_offsets.back() != static_cast<int64_t>(plan.pages.size())) {
    return contradiction("its page tables overlap or leave gaps");
  }
  int64_t rows = 0;
  for (const PlanRow& row : plan.rows) {
    if (row.rows < 1 || row.first_position < 0 || row.samples < 0 || row.draft_rows < 0 || row.draft_rows >= row.rows ||
        row.logit_rows < 0 || row.logit_rows > row.rows || (row.samples > 0 && row.logit_rows <= row.draft_rows) ||
        (row.draft_rows > 0 && row.samples != 1)) {
      return contradiction("the rows of sequence " + std::to_string(row.id) + " contradict each other");
    }
    rows += row.rows;
  }
  if (rows != static_cast<int64_t>(plan.tokens.size())) return contradiction("its rows and tokens disagree");
  return {};
}

Status check_page(PageId page, int64_t pages, const char* what) {
  if (page >= 0 && page < pages) return {};
  return contradiction(std::string(what) + " names page " + std::to_string(page) + " of " + std::to_string(pages));
}

Status check_move(const PageMove& move, const PlanBounds& bounds) {
  if (move.group < 0 || static_cast<size_t>(move.group) >= bounds.groups.size()) {
    return contradiction("it moves a page of KV group " + std::to_string(move.group));
  }
  if (move.slots < 0 || move.slots > bounds.page_tokens) {
    return contradiction("it moves " + std::to_string(move.slots) + " slots of a page");
  }
  const int64_t pages = bounds.groups[static_cast<size_t>(move.group)].pages;
  if (move.kind != PageMove::Kind::kLoad) QUIRE_RETURN_IF_ERROR(check_page(move.from, pages, "a move"));
  if (move.kind != PageMove::Kind::kSave) QUIRE_RETURN_IF_ERROR(check_page(move.to, pages, "a move"));
  return {};
}

// Pages that fell out of the window of the first row may be gone; all others must exist.
Status check_table(std::span<const PageId> table, const PlanRow& row, const PlanBounds::Group& group,
                   int64_t page_tokens) {
  const int64_t last_page = (row.first_position + row.rows - 1) / page_tokens;
  if (last_page >= static_cast<int64_t>(table.size())) {
    return contradiction("sequence " + std::to_string(row.id) + " lacks pages");
  }
  const int64_t first_seen = group.window == 0 ? 0 : std::max<int64_t>(0, row.first_position - group.window + 1);
  for (size_t i = static_cast<size_t>(first_seen / page_tokens); i < table.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(check_page(table[i], group.pages, "a page table"));
  }
  return {};
}

}  // namespace

int64_t attention_over_layers(std::span<const KvGroupConfig> groups, int64_t first, int64_t rows) {
  int64_t sum = 0;
  for (const KvGroupConfig& group : groups) sum += group.layers * attention_tokens(first, rows, group.window);
  return sum;
}

// Keeps the memory: a plan is made for every step.
void StepPlan::clear() {
  groups = 0;
  rows.clear();
  tokens.clear();
  pages.clear();
  page_offsets.clear();
  moves.clear();
  admitted.clear();
  preempted.clear();
  shape = {};
  wake_at_ns = kNever;
}

std::string StepPlan::bytes() const {
  ByteWriter out;
  out.put(groups);
  out.put(static_cast<uint64_t>(rows.size()));
  for (const PlanRow& row : rows) put_row(out, row);
  out.put_list(tokens);
  out.put_list(pages);
  out.put_list(page_offsets);
  out.put(static_cast<uint64_t>(moves.size()));
  for (const PageMove& move : moves) put_move(out, move);
  return out.take();
}

Result<StepPlan> StepPlan::parse(std::string_view bytes) {
  ByteSource in(bytes);
  StepPlan plan;
  plan.groups = in.get<int32_t>();
  const uint64_t rows = in.get_count(kRowBytes);
  for (uint64_t i = 0; i < rows; ++i) plan.rows.push_back(get_row(in));
  plan.tokens = in.get_list<int32_t>();
  plan.pages = in.get_list<PageId>();
  plan.page_offsets = in.get_list<int64_t>();
  const uint64_t moves = in.get_count(kMoveBytes);
  for (uint64_t i = 0; i < moves; ++i) plan.moves.push_back(get_move(in));
  if (!in.ok()) return contradiction("it ends too early");
  if (!in.at_end()) return contradiction("more follows than its lists say");
  QUIRE_RETURN_IF_ERROR(check_shape(plan));
  return plan;
}

Status check_plan(const StepPlan& plan, const PlanBounds& bounds) {
  QUIRE_RETURN_IF_ERROR(check_shape(plan));
  if (static_cast<size_t>(plan.groups) != bounds.groups.size()) {
    return contradiction("it has " + std::to_string(plan.groups) + " KV groups, the model " +
                         std::to_string(bounds.groups.size()));
  }
  if (static_cast<int64_t>(plan.tokens.size()) > bounds.max_rows) {
    return contradiction("it has " + std::to_string(plan.tokens.size()) + " rows, a step at most " +
                         std::to_string(bounds.max_rows));
  }
  for (const int32_t token : plan.tokens) {
    if (token < 0 || token >= bounds.vocab_size) {
      return contradiction("it has token " + std::to_string(token) + ", the vocabulary " +
                           std::to_string(bounds.vocab_size));
    }
  }
  for (const PageMove& move : plan.moves) QUIRE_RETURN_IF_ERROR(check_move(move, bounds));
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    if (row.first_position > bounds.context - row.rows) {
      return contradiction("sequence " + std::to_string(row.id) + " reaches beyond the context of " +
                           std::to_string(bounds.context) + " tokens");
    }
    for (size_t g = 0; g < bounds.groups.size(); ++g) {
      QUIRE_RETURN_IF_ERROR(check_table(plan.page_table(i, g), row, bounds.groups[g], bounds.page_tokens));
    }
  }
  return {};
}

}  // namespace quire
