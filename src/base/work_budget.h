// How long a piece of work may go on: until a point in time, or until someone calls it off.
//
// Who starts the work owns the budget and hands it down by pointer; null means that nothing limits the work. A
// WorkBudget may be asked and cancelled from any thread. A WorkMeter is one thread's: it asks the budget only once in
// so many units of work, a unit being a step or a byte that takes 100 ns at most.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>

#include "base/status.h"

namespace quire {

class WorkBudget {
 public:
  using Clock = std::chrono::steady_clock;

  WorkBudget() = default;  // until cancelled
  explicit WorkBudget(Clock::duration time) : deadline_(Clock::now() + time) {}
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  // For good.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // Once true, always true.
  bool spent() const { return !why().ok(); }
  // Cancelled or deadline exceeded; ok while there is time.
  Status why() const {
    if (cancelled_.load(std::memory_order_relaxed)) return cancelled("the work was called off");
    if (deadline_ && Clock::now() >= *deadline_) return deadline_exceeded("the work took longer than it may");
    return {};
  }

 private:
  std::atomic<bool> cancelled_{false};
  std::optional<Clock::time_point> deadline_;
};

class WorkMeter {
 public:
  explicit WorkMeter(const WorkBudget* budget) : budget_(budget) {}

  // Counts work about to be done; true: stop, and return why().
  bool spent(size_t units = 1) {
    if (units < units_left_) {
      units_left_ -= units;
      return false;
    }
    return ask();
  }
  // Whether spent() has ever said so; asks nothing.
  bool stopped() const { return !why_.ok(); }
  const Status& why() const { return why_; }

 private:
  static constexpr size_t kUnitsBetween = 8192;

  bool ask() {
    units_left_ = kUnitsBetween;
    if (budget_ != nullptr && why_.ok()) why_ = budget_->why();
    if (!why_.ok()) units_left_ = 0;
    return !why_.ok();
  }

  const WorkBudget* budget_;
  size_t units_left_ = 0;
  Status why_;
};

}  // namespace quire
