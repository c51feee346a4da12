// Finds added tokens in text: leftmost first, the longest of those that begin at one place.
//
// Immutable after creation, any thread. Time: linear in the text, times the length of the longest token that a text
// keeps almost spelling. Source of the semantics: huggingface/tokenizers, tokenizers/src/tokenizer/added_vocabulary.rs.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/work_budget.h"
#include "text/splitter.h"
#include "text/tokenizer_spec.h"

namespace quire {

class AddedTokenFinder {
 public:
  static constexpr size_t kMaxTokenBytes = 4096;

  struct Entry {
    std::string pattern;  // what to look for: the token's text, or that in normalized form
    AddedToken token;
  };

  enum class Decision {
    kTake,
    kPassOver,  // its text is ordinary text; look on behind it
    kRetry,     // try the next shorter token there, then the next character
  };
  using Decide = std::function<Decision(const Entry& entry, TextRange range)>;

  // Fails on empty and overlong patterns. Of entries with the same pattern the first counts.
  static Result<AddedTokenFinder> create(std::vector<Entry> entries);

  struct Segment {
    TextRange range;
    int32_t id = -1;  // -1: ordinary text
  };

  // Cuts `text` (valid UTF-8) into ordinary text and tokens, in order. Empty segments are left out. Whoever gives a
  // meter asks it afterwards whether the work was stopped half-way.
  std::vector<Segment> find(std::string_view text, const Decide& decide, WorkMeter* meter = nullptr) const;

  bool empty() const { return entries_.empty(); }
  int64_t memory_bytes() const;

 private:
  using Entries = std::vector<const Entry*>;

  // What the text spells at `at`, the shortest first.
  void spelled_at(std::string_view text, size_t at, Entries* spelled) const;
  // The entry of `spelled` that counts at *at, or null; *at becomes where to look on.
  static const Entry* accepted(const Entries& spelled, const Decide& decide, size_t* at);

  std::vector<Entry> entries_;                 // sorted by pattern
  std::array<uint32_t, 257> first_by_byte_{};  // entries that begin with byte b: [first[b], first[b + 1])
};

}  // namespace quire
