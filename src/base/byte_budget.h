// How many bytes a kind of work may hold at a time, over everything that does it: what requests bring and make is counted
// here until it is freed.
//
// A ByteHold is one holder's share. It gives back what it holds when it is destroyed, so a share moves with the bytes it
// stands for. Counting needs no lock: any thread; one hold belongs to one thread at a time. The budget outlives its holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace quire {

class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }  // how often nothing was left

  // While closed nothing is given out, whatever is free: the machine itself has no memory left.
  void close(bool closed) { closed_.store(closed, std::memory_order_relaxed); }
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  friend class ByteHold;

  bool take(int64_t bytes) {
    const int64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (!closed() && before <= limit_ - bytes) return true;
    give_back(bytes);
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  void give_back(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const int64_t limit_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> refused_{0};
  std::atomic<bool> closed_{false};
};

class ByteHold {
 public:
  ByteHold() = default;  // of no budget: holds what it likes
  explicit ByteHold(ByteBudget* budget) : budget_(budget) {}
  ~ByteHold() { release(); }
  ByteHold(ByteHold&& other) noexcept : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    if (this == &other) return *this;
    release();
    budget_ = other.budget_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  // False: the budget has not as much left, and nothing changed.
  [[nodiscard]] bool grow(int64_t bytes) {
    if (budget_ == nullptr) return true;
    if (!budget_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  // Counts what is there already, even beyond the limit.
  void force(int64_t bytes) {
    if (budget_ == nullptr) return;
    budget_->used_.fetch_add(bytes, std::memory_order_relaxed);
    bytes_ += bytes;
  }
  // Takes over what `other` holds, of the same budget or none.
  void absorb(ByteHold&& other) {
    if (budget_ == nullptr) budget_ = other.budget_;
    bytes_ += std::exchange(other.bytes_, 0);
  }
  void release() {
    if (budget_ != nullptr && bytes_ > 0) budget_->give_back(bytes_);
    bytes_ = 0;
  }
  int64_t bytes() const { return bytes_; }

 private:
  ByteBudget* budget_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace quire
