#include "engine/stop_matcher.h"

#include <limits>

#include "base/check.h"

namespace quire {

Result<StopMatcher> StopMatcher::create(std::span<const std::string> stops) {
  size_t total_bytes = 0;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return invalid_argument("stop string " + std::to_string(i + 1) +
                              " is empty and would end every answer at once; leave it out");
    }
    total_bytes += stops[i].size();
  }
  if (total_bytes >= std::numeric_limits<uint32_t>::max()) {
    return out_of_range("the stop strings hold " + std::to_string(total_bytes) + " bytes; 4 GB is the limit");
  }
  StopMatcher matcher;
  for (const std::string& stop : stops) matcher.insert(stop);
  matcher.link_suffixes();
  return matcher;
}

void StopMatcher::insert(std::string_view stop) {
  uint32_t node = 0;
  for (const char c : stop) {
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
void StopMatcher::link_suffixes() {
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

uint32_t StopMatcher::child(uint32_t node, uint8_t byte) const {
  uint32_t c = nodes_[node].first_child;
  while (c != 0 && nodes_[c].byte != byte) c = nodes_[c].next_sibling;
  return c;
}

uint32_t StopMatcher::next(uint32_t node, uint8_t byte) const {
  for (;; node = nodes_[node].fail) {
    const uint32_t target = child(node, byte);
    if (target != 0 || node == 0) return target;
  }
}

bool StopMatcher::feed(std::string_view bytes, std::string& released) {
  QUIRE_CHECK(nodes_[state_].match_bytes == 0);
  for (const char c : bytes) {
    held_.push_back(c);
    state_ = next(state_, static_cast<uint8_t>(c));
    const Node& node = nodes_[state_];
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
