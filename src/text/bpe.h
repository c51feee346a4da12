// Byte-pair encoding of one piece of text: the merge-list kind (Sennrich et al. 2016, as Hugging Face runs it) and the
// score kind of SentencePiece (Kudo and Richardson 2018), where any two neighbours whose text is a token may join.
//
// A heap of candidate pairs over a linked list of symbols: O(n log n) in the length of the piece.
// Immutable after creation, any thread; a Workspace is one thread's scratch memory.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/work_budget.h"
#include "text/merge_table.h"
#include "text/tokenizer_spec.h"

namespace quire {

class BpeModel {
 public:
  // Moves merges and scores out of `spec`, and keeps a pointer to it, which must stay where it is.
  static Result<BpeModel> create(TokenizerSpec* spec);

  struct Symbol {
    int32_t id = 0;
    uint32_t begin = 0;  // byte offset in the piece
    int32_t previous = 0;
    int32_t next = 0;
  };
  struct Candidate {
    uint64_t key = 0;  // priority, then position: lowest first
    uint32_t end = 0;  // of the joined symbol; tells whether its parts are still the same
    int32_t id = 0;
  };
  struct Workspace {
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    WorkMeter* meter = nullptr;  // that of the call; stops it half-way
  };

  // Appends the ids of `piece`: valid UTF-8, under 1 GiB, not empty. Fewer when the workspace's meter stops it.
  void encode(std::string_view piece, Workspace* workspace, std::vector<int32_t>* out) const;

  // The end of the part of `piece` from `begin` that can be encoded by itself with the same result as within the
  // whole: up to a U+2581 that no token holds behind the character before it. Any other when `meter` stops it.
  size_t independent_end(std::string_view piece, size_t begin, WorkMeter* meter = nullptr) const;

  int64_t memory_bytes() const;

 private:
  explicit BpeModel(const TokenizerSpec* spec) : spec_(spec) {}

  void find_byte_ids();
  void find_joints();
  void make_symbols(std::string_view piece, Workspace* workspace) const;
  template <typename Lookup>
  static void merge(const Lookup& lookup, Workspace* workspace);

  const TokenizerSpec* spec_;
  std::optional<MergeTable> merges_;
  std::vector<float> scores_;
  // Byte-level: the id of each byte's stand-in. Byte fallback: of "<0x00>".."<0xFF>". -1: no such token.
  std::array<int32_t, 256> byte_ids_{};
  bool cuts_at_spaces_ = false;
  std::bitset<256> joins_space_;  // last bytes of characters that some token holds before a U+2581
};

}  // namespace quire
