// Finds stop strings in a growing output, over bytes, and holds back what may yet turn out to be part of one.
//
// An Aho-Corasick automaton: the bytes held back are exactly its depth, the longest suffix of the output that begins a
// stop string. So a stop string may cross token and UTF-8 borders, none of its bytes is ever released, and nothing
// else is delayed. The output ends before the stop string that is complete first; of several that end at the same
// byte, before the longest.
//
// StopTexts is the automaton: built once where a request enters, immutable, any thread; copies share it. StopMatcher is
// where one output stands in it: one a sequence, one thread at a time.
// Source: Aho and Corasick, "Efficient String Matching", CACM 18 (1975).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

class StopTexts {
 public:
  static constexpr size_t kMaxTexts = 64;
  static constexpr size_t kMaxBytes = 4096;  // of all texts

  StopTexts() = default;  // none
  // kInvalidArgument: one is empty, which would match everywhere, or there are too many or too long ones.
  static Result<StopTexts> create(std::vector<std::string> texts);

  bool empty() const { return automaton_ == nullptr; }
  std::span<const std::string> texts() const;

 private:
  friend class StopMatcher;

  struct Node {
    uint8_t byte = 0;          // on the edge from the parent
    uint32_t first_child = 0;  // 0, the root, is nobody's child: none
    uint32_t next_sibling = 0;
    uint32_t fail = 0;         // node of the longest proper suffix that begins a stop string
    uint32_t depth = 0;        // bytes from the root
    uint32_t match_bytes = 0;  // the longest stop string that is a suffix of this node's; 0: none
  };

  class Automaton {
   public:
    explicit Automaton(std::vector<std::string> texts);

    const std::vector<std::string>& texts() const { return texts_; }
    const Node& node(uint32_t index) const { return nodes_[index]; }
    uint32_t next(uint32_t node, uint8_t byte) const;

   private:
    void insert(std::string_view text);
    void link_suffixes();
    uint32_t child(uint32_t node, uint8_t byte) const;  // 0: none

    std::vector<std::string> texts_;
    std::vector<Node> nodes_;  // [0] is the root
  };

  std::shared_ptr<const Automaton> automaton_;  // null: no stop strings
};

class StopMatcher {
 public:
  // Without stop strings everything is released at once.
  explicit StopMatcher(StopTexts texts) : texts_(std::move(texts)) {}

  // Appends to `released` what has become final. True: a stop string is complete; the output ends with what was
  // released so far, and the matcher takes no more.
  bool feed(std::string_view bytes, std::string& released);

  // The output ended without a stop string: appends what was held back.
  void finish(std::string& released);

  size_t held_bytes() const { return held_.size(); }
  // The stop string that ended the output; empty before.
  const std::string& matched() const { return matched_; }

 private:
  StopTexts texts_;
  uint32_t state_ = 0;
  std::string held_;  // its size is the depth of state_
  std::string matched_;
};

}  // namespace quire
