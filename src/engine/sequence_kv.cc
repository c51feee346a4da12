#include "engine/sequence_kv.h"

#include <algorithm>

#include "engine/model_setup.h"

namespace quire {

SequenceKv::SequenceKv(const ModelConfig& config, int64_t context) {
  for (const KvGroup& kv : config.kv_groups) {
    Group group;
    group.window = kv.window;
    group.pages = pages_per_sequence(kv, context);
    group.table.resize(static_cast<size_t>((context + kPageTokens - 1) / kPageTokens));
    for (size_t i = 0; i < group.table.size(); ++i)
      group.table[i] = static_cast<int32_t>(static_cast<int64_t>(i) % group.pages);
    groups_.push_back(std::move(group));
  }
}

std::vector<int64_t> SequenceKv::pages() const {
  std::vector<int64_t> pages;
  for (const Group& group : groups_) pages.push_back(group.pages);
  return pages;
}

std::vector<const int32_t*> SequenceKv::page_tables() const {
  std::vector<const int32_t*> tables;
  for (const Group& group : groups_) tables.push_back(group.table.data());
  return tables;
}

void SequenceKv::append(std::span<const int32_t> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  written_ = std::max(written_, static_cast<int64_t>(tokens_.size()));
}

void SequenceKv::clear() {
  tokens_.clear();
  written_ = 0;
}

bool SequenceKv::intact(int64_t position) const {
  const int64_t last_page = (written_ - 1) / kPageTokens;
  for (const Group& group : groups_) {
    if (group.window == 0) continue;
    const int64_t first_page = std::max<int64_t>(position - group.window + 1, 0) / kPageTokens;
    if (last_page - first_page >= group.pages) return false;
  }
  return true;
}

int64_t SequenceKv::keep_prefix(std::span<const int32_t> prompt, int64_t limit) {
  const auto end = std::mismatch(tokens_.begin(), tokens_.end(), prompt.begin(), prompt.end()).first;
  const int64_t common = std::min<int64_t>(end - tokens_.begin(), limit);
  if (common == 0 || !intact(common)) {
    clear();
    return 0;
  }
  tokens_.resize(static_cast<size_t>(common));
  return common;
}

}  // namespace quire
