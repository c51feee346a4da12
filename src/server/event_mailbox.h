// Carries events from the engine's thread to the I/O thread: the one hand-off on the way back.
//
// put() is called on the engine's thread and only appends; the first event after a delivery wakes the I/O thread, so a
// step's events cross together. Shared with the engine's callbacks, which may outlive the server: after close() what
// they put is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/event.h"

namespace quire {

class EventMailbox {
 public:
  struct Item {
    uint64_t generation = 0;  // number of the generation it is for
    size_t part = 0;          // which of its prompts
    Event event;
  };

  // `wake`: called with the mailbox locked; must make the I/O thread call take() soon, and not do it itself.
  explicit EventMailbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void put(Item item) {
    const std::lock_guard lock(mutex_);
    if (!wake_) return;
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
  std::vector<Item> items_;
};

}  // namespace quire
