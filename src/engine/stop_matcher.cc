#include "engine/stop_matcher.h"

#include <utility>

#include "base/check.h"

namespace quire {

Result<StopTexts> StopTexts::create(std::vector<std::string> texts) {
  if (texts.size() > kMaxTexts) {
    return invalid_argument("there are " + std::to_string(texts.size()) + " stop strings; at most " +
                            std::to_string(kMaxTexts) + " are taken");
  }
  size_t bytes = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) {
      return invalid_argument("stop string " + std::to_string(i + 1) +
                              " is empty and would end every answer at once; leave it out");
    }
    bytes += texts[i].size();
  }
  if (bytes > kMaxBytes) {
    return invalid_argument("the stop strings hold " + std::to_string(bytes) + " bytes; at most " +
                            std::to_string(kMaxBytes) + " are taken, of all together");
  }
  StopTexts result;
  if (!texts.empty()) result.automaton_ = std::make_shared<const Automaton>(std::move(texts));
  return result;
}

std::span<const std::string> StopTexts::texts() const {
  if (empty()) return {};
  return automaton_->texts();
}

StopTexts::Automaton::Automaton(std::vector<std::string> texts) : texts_(std::move(texts)), nodes_(1) {
  for (const std::string& text : texts_) insert(text);
  link_suffixes();
}

void StopTexts::Automaton::insert(std::string_view text) {
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    uint32_t target = child(node, byte);
    if (target == 0) {
      target = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({.byte = byte, .next_sibling = nodes_[node].first_child, .depth = nodes_[node].depth + 1});
      nodes_[node].first_child = target;
    }
    node = target;
  }
  nodes_[node].match_bytes = nodes_[node].depth;
}

// Breadth first, so that a node's suffix, which is shorter, is complete before the node.
void StopTexts::Automaton::link_suffixes() {
  std::vector<uint32_t> queue = {0};
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t node = queue[i];
    for (uint32_t c = nodes_[node].first_child; c != 0; c = nodes_[c].next_sibling) {
      nodes_[c].fail = node == 0 ? 0 : next(nodes_[node].fail, nodes_[c].byte);
      if (nodes_[c].match_bytes == 0) nodes_[c].match_bytes = nodes_[nodes_[c].fail].match_bytes;
      queue.push_back(c);
    }
  }
}

uint32_t StopTexts::Automaton::child(uint32_t node, uint8_t byte) const {
  uint32_t c = nodes_[node].first_child;
  while (c != 0 && nodes_[c].byte != byte) c = nodes_[c].next_sibling;
  return c;
}

uint32_t StopTexts::Automaton::next(uint32_t node, uint8_t byte) const {
  for (;; node = nodes_[node].fail) {
    const uint32_t target = child(node, byte);
    if (target != 0 || node == 0) return target;
  }
}

bool StopMatcher::feed(std::string_view bytes, std::string& released) {
  QUIRE_CHECK(matched_.empty());
  if (texts_.empty()) {
    released += bytes;
    return false;
  }
  const StopTexts::Automaton& automaton = *texts_.automaton_;
  for (const char c : bytes) {
    held_.push_back(c);
    state_ = automaton.next(state_, static_cast<uint8_t>(c));
    const StopTexts::Node& node = automaton.node(state_);
    const size_t undecided = node.match_bytes != 0 ? node.match_bytes : node.depth;
    const size_t final_bytes = held_.size() - undecided;
    released.append(held_, 0, final_bytes);
    held_.erase(0, final_bytes);
    if (node.match_bytes != 0) {
      matched_ = std::move(held_);
      held_.clear();
      return true;
    }
  }
  return false;
}

void StopMatcher::finish(std::string& released) {
  released += held_;
  held_.clear();
  state_ = 0;
}

}  // namespace quire
