#include "scheduler/hash_chain_model.h"

#include <algorithm>

namespace quire {
namespace {

// Reads the slots that a row sees: the one before it, the oldest in its window, and one in between.
template <typename Read>
uint64_t row_state(std::span<const KvGroupConfig> groups, int32_t token, int64_t position, uint64_t salt, Read read) {
  uint64_t state = mix({static_cast<uint64_t>(token), static_cast<uint64_t>(position), position == 0 ? salt : 0});
  if (position == 0) return state;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t window = groups[g].window;
    const int64_t oldest = window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    if (oldest >= position) continue;
    const int64_t between = oldest + static_cast<int64_t>(mix({state, g}) % static_cast<uint64_t>(position - oldest));
    state = mix({state, read(g, position - 1), read(g, oldest), read(g, between)});
  }
  return state;
}

uint64_t slot_value(uint64_t state, size_t group) { return mix({state, 0x736c6f74, group}); }

}  // namespace

uint64_t mix(std::initializer_list<uint64_t> values) {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (const uint64_t value : values) {
    hash = (hash ^ value) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ (hash >> 29)) * 0x94d049bb133111eb;
    hash ^= hash >> 32;
  }
  return hash;
}

int32_t next_token(uint64_t state, uint64_t seed, int64_t position) {
  // The stop token is made rarer than the others, so that outputs have some length.
  const uint64_t draw = mix({state, seed, static_cast<uint64_t>(position)});
  if (draw % 16 == 0) return kStopToken;
  return 1 + static_cast<int32_t>((draw >> 8) % (kVocabulary - 1));
}

std::vector<uint64_t> reference_states(std::span<const KvGroupConfig> groups, std::span<const int32_t> tokens,
                                       uint64_t salt) {
  std::vector<uint64_t> states;
  const auto read = [&](size_t group, int64_t position) {
    return slot_value(states[static_cast<size_t>(position)], group);
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    states.push_back(row_state(groups, tokens[i], static_cast<int64_t>(i), salt, read));
  }
  return states;
}

std::vector<int32_t> reference_output(std::span<const KvGroupConfig> groups, std::vector<int32_t> prompt,
                                      int64_t max_tokens, uint64_t seed, uint64_t salt) {
  std::vector<int32_t> output;
  std::vector<uint64_t> states = reference_states(groups, prompt, salt);
  const auto read = [&](size_t group, int64_t position) {
    return slot_value(states[static_cast<size_t>(position)], group);
  };
  while (static_cast<int64_t>(output.size()) < max_tokens) {
    const int64_t position = static_cast<int64_t>(states.size());
    output.push_back(next_token(states.back(), seed, position));
    if (output.back() == kStopToken) break;
    states.push_back(row_state(groups, output.back(), position, salt, read));
  }
  return output;
}

HashChainModel::HashChainModel(const KvCacheConfig& config)
    : groups_(config.groups), page_tokens_(config.page_tokens), slots_(groups_.size()) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    slots(g).resize(static_cast<size_t>(groups_[g].pages * page_tokens_));
    for (uint64_t& slot : slots(g)) slot = garbage();
  }
}

void HashChainModel::copy_pages(const StepPlan& plan) {
  for (const PageMove& copy : plan.moves) {
    std::vector<uint64_t>& group = slots(static_cast<size_t>(copy.group));
    for (int64_t i = 0; i < page_tokens_; ++i) {
      const size_t to = static_cast<size_t>(copy.to * page_tokens_ + i);
      group[to] = i < copy.slots ? group[static_cast<size_t>(copy.from * page_tokens_ + i)] : garbage();
    }
  }
}

std::vector<uint64_t> HashChainModel::forward(const StepPlan& plan,
                                              const std::function<uint64_t(SequenceId)>& salt_of) {
  copy_pages(plan);
  std::vector<uint64_t> logits;
  size_t next = 0;
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    const PlanRow& row = plan.rows[r];
    const uint64_t salt = salt_of(row.id);
    const auto slot = [&](size_t group, int64_t position) -> uint64_t& {
      const PageId page = plan.page_table(r, group)[static_cast<size_t>(position / page_tokens_)];
      static uint64_t nowhere;
      if (page == kNoPage) return nowhere = garbage();
      return slots(group)[static_cast<size_t>(page * page_tokens_ + position % page_tokens_)];
    };
    for (int64_t i = 0; i < row.rows; ++i) {
      const int64_t position = row.first_position + i;
      const uint64_t state = row_state(groups_, plan.tokens[next++], position, salt, slot);
      for (size_t g = 0; g < groups_.size(); ++g) slot(g, position) = slot_value(state, g);
      if (i >= row.rows - row.logit_rows) logits.push_back(state);
    }
  }
  return logits;
}

void HashChainModel::fail(const StepPlan& plan) {
  copy_pages(plan);
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    const PlanRow& row = plan.rows[r];
    for (size_t g = 0; g < groups_.size(); ++g) {
      const std::span<const PageId> table = plan.page_table(r, g);
      for (int64_t position = row.first_position; position < row.first_position + row.rows; ++position) {
        const PageId page = table[static_cast<size_t>(position / page_tokens_)];
        slots(g)[static_cast<size_t>(page * page_tokens_ + position % page_tokens_)] = garbage();
      }
    }
  }
}

void HashChainModel::spoil_unused(const KvCache& cache) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int64_t group = static_cast<int64_t>(g);
    for (PageId page = 0; page < groups_[g].pages; ++page) {
      if (cache.pool(group).references(page) > 0) continue;
      if (cache.config().prefix_caching && cache.index(group).published(page)) continue;
      for (int64_t i = 0; i < page_tokens_; ++i) slots(g)[static_cast<size_t>(page * page_tokens_ + i)] = garbage();
    }
  }
}

}  // namespace quire
