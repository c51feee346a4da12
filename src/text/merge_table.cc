#include "text/merge_table.h"

#include <string>

namespace quire {

Result<MergeTable> MergeTable::create(const Vocabulary& vocabulary, const std::vector<Merge>& merges) {
  if (merges.size() >= kNone) {
    return out_of_range("the tokenizer has " + std::to_string(merges.size()) + " merges; quire reads at most " +
                        std::to_string(kNone - 1));
  }
  MergeTable table;
  size_t slots = 16;
  while (slots * 3 < merges.size() * 5) slots *= 2;
  table.slots_.assign(slots, kFree);
  table.mask_ = slots - 1;
  table.results_.reserve(merges.size());
  std::string joined;
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const Merge merge = merges[rank];
    if (merge.left < 0 || merge.right < 0 || merge.left >= vocabulary.size() || merge.right >= vocabulary.size()) {
      return corrupt("merge " + std::to_string(rank) + " of the tokenizer joins tokens that do not exist");
    }
    joined = vocabulary.text(merge.left);
    joined += vocabulary.text(merge.right);
    const int32_t result = vocabulary.find(joined);
    if (result < 0) {
      return corrupt("merge " + std::to_string(rank) + " of the tokenizer makes '" + joined + "', which is no token");
    }
    table.results_.push_back(result);
    const uint64_t pair = pair_key(merge.left, merge.right);
    size_t i = table.slot_of(pair);
    while (table.slots_[i] != kFree && table.slots_[i] >> kRankBits != pair) i = (i + 1) & table.mask_;
    table.slots_[i] = pair << kRankBits | rank;
  }
  return table;
}

}  // namespace quire
