// Carries events from the engine's thread to the I/O thread: the one hand-off on the way back.
//
// put() is called on the engine's thread and only appends; the first event after a delivery wakes the I/O thread, so a
// step's events cross together. What waits here counts against the budget of requests; an event for which nothing is left
// arrives empty and marked as lost, and whoever takes it must end the generation. Shared with the engine's callbacks,
// which may outlive the server: after close() what they put is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/byte_budget.h"
#include "engine/event.h"

namespace quire {

// Bytes that an event holds.
inline int64_t event_bytes(const Event& event) {
  const auto scores = [](const std::vector<TokenLogprob>& tokens) {
    size_t bytes = tokens.size() * sizeof(TokenLogprob);
    for (const TokenLogprob& token : tokens) bytes += token.top.size() * sizeof(TokenLogprob::Candidate);
    return bytes;
  };
  const size_t bytes = sizeof(Event) + event.text.size() + event.ids.size() * sizeof(int32_t) + scores(event.logprobs) +
                       scores(event.prompt_logprobs);
  return static_cast<int64_t>(bytes);
}

class EventMailbox {
 public:
  struct Item {
    uint64_t generation = 0;  // number of the generation it is for
    size_t part = 0;          // which of its prompts
    Event event;
    bool lost = false;  // what the event said
    ByteHold held = {};
  };

  // `wake`: called with the mailbox locked; must make the I/O thread call take() soon, and not do it itself.
  EventMailbox(std::function<void()> wake, ByteBudget& budget) : wake_(std::move(wake)), budget_(budget) {}

  void put(Item item) {
    const std::lock_guard lock(mutex_);
    if (!wake_) return;
    item.held = ByteHold(&budget_);
    const bool ends = item.event.kind == Event::Kind::kFinished || item.event.kind == Event::Kind::kFailed;
    // An end is small, and must come.
    if (!ends && !item.held.grow(event_bytes(item.event))) {
      item.event = {};
      item.lost = true;
    }
    items_.push_back(std::move(item));
    if (items_.size() == 1) wake_();
  }

  std::vector<Item> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(items_, {});
  }

  void close() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    items_.clear();
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;  // null: closed
  ByteBudget& budget_;
  std::vector<Item> items_;
};

}  // namespace quire
