#include "sample/logprobs.h"

#include <algorithm>

namespace quire {

RowLogprobs row_logprobs(std::span<const float> logits, float normalizer, int32_t chosen_id, int32_t top_n) {
  RowLogprobs row;
  const float chosen = logits[static_cast<size_t>(chosen_id)];
  row.chosen = chosen - normalizer;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] > chosen || (logits[id] == chosen && static_cast<int32_t>(id) < chosen_id)) ++row.rank;
  }
  const size_t count = std::min(logits.size(), static_cast<size_t>(std::max(top_n, 0)));
  if (count == 0) return row;
  const auto likelier = [](const RankedToken& a, const RankedToken& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
  };
  // A heap of the best so far, its worst on top: few tokens of a large vocabulary ever enter it.
  for (size_t id = 0; id < logits.size(); ++id) {
    const RankedToken token{static_cast<int32_t>(id), logits[id]};
    if (row.top.size() == count) {
      if (!likelier(token, row.top.front())) continue;
      std::pop_heap(row.top.begin(), row.top.end(), likelier);
      row.top.pop_back();
    }
    row.top.push_back(token);
    std::push_heap(row.top.begin(), row.top.end(), likelier);
  }
  std::sort_heap(row.top.begin(), row.top.end(), likelier);
  for (RankedToken& token : row.top) token.logprob -= normalizer;
  return row;
}

}  // namespace quire
