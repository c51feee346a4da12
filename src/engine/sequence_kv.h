// The KV pages of one sequence that owns the whole store, and which of its tokens they still hold.
//
// A global group has a page for every token of the context. A window group has a ring: pages that fell out of the
// window are written again, so going back to an earlier position is possible only while the window before it is intact.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace quire {

class SequenceKv {
 public:
  SequenceKv(const ModelConfig& config, int64_t context);

  std::vector<int64_t> pages() const;  // per group, what the store must hold
  std::vector<const int32_t*> page_tables() const;

  // The tokens whose K and V are stored, from position 0 on.
  std::span<const int32_t> tokens() const { return tokens_; }
  void append(std::span<const int32_t> tokens);
  void clear();

  // Keeps the longest usable prefix that `prompt` shares with the stored tokens, at most `limit` of them, and returns
  // its length.
  int64_t keep_prefix(std::span<const int32_t> prompt, int64_t limit);

 private:
  struct Group {
    int64_t window = 0;
    int64_t pages = 0;
    std::vector<int32_t> table;  // of the whole context
  };
  bool intact(int64_t position) const;

  std::vector<Group> groups_;
  std::vector<int32_t> tokens_;
  int64_t written_ = 0;  // highest position ever stored since clear(), exclusive
};

}  // namespace quire
