#include "base/thread_pool.h"

#include <immintrin.h>
#include <sched.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>

namespace quire {
namespace {

// About 50 microseconds of PAUSE on current x86 cores: longer than the gaps inside a step, shorter than anything a
// person or a power meter would notice.
constexpr int kSpins = 1500;
// Where cores are contended, spinning takes time from the very thread that is waited for.
constexpr int kFewSpins = 60;
constexpr double kContendedLoss = 0.15;

// A decision rests on so much time in phases; long enough that one interrupt does not make it.
constexpr uint64_t kPeriodMs = 25;
// Of n workers, n x (1 - loss) do something useful. One fewer is better where that is less than n - 1 and this much: a
// step that is bound by memory loses little with a worker less.
constexpr double kWorthAWorker = 0.35;
// How long fewer workers are used before more are tried; a try that fails waits longer, up to the second value.
constexpr uint64_t kPauseMs = 150;
constexpr uint64_t kLongestPauseMs = 600;
constexpr uint64_t kTrialMs = 8;

uint64_t clock_ticks() { return __rdtsc(); }

uint64_t measure_ticks_per_ms() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const uint64_t first = clock_ticks();
  while (Clock::now() - start < std::chrono::microseconds(500)) _mm_pause();
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(clock_ticks() - first) / ms));
}

}  // namespace

ThreadPool::ThreadPool(int threads, bool adapt)
    : size_(std::max(threads, 1)),
      adapt_(adapt && size_ > 1),
      workers_(new Worker[static_cast<size_t>(size_)]),
      active_(size_),
      spins_(kSpins),
      ticks_per_ms_(adapt_ ? measure_ticks_per_ms() : 1),
      pause_ms_(kPauseMs) {
  threads_.reserve(static_cast<size_t>(size_ - 1));
  for (int worker = 1; worker < size_; ++worker) threads_.emplace_back([this, worker] { worker_loop(worker); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  for (int worker = 1; worker < size_; ++worker) {
    workers_[static_cast<size_t>(worker)].phase.fetch_add(1, std::memory_order_release);
    workers_[static_cast<size_t>(worker)].phase.notify_one();
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_phase(Call call, void* context, int workers) {
  if (workers == 1) {
    call(context, 0);
    return;
  }
  const uint64_t began = clock_ticks();
  call_ = call;
  context_ = context;
  unfinished_.store(workers - 1, std::memory_order_relaxed);
  for (int worker = 1; worker < workers; ++worker) {
    workers_[static_cast<size_t>(worker)].phase.fetch_add(1, std::memory_order_release);
    workers_[static_cast<size_t>(worker)].phase.notify_one();
  }
  call(context, 0);
  workers_[0].done_at = clock_ticks();
  const int spins = spins_.load(std::memory_order_relaxed);
  for (int spin = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spin) {
    // A worker that lost its core needs this one's: stop burning it.
    if (spin < spins)
      _mm_pause();
    else
      sched_yield();
  }
  if (!adapt_) return;
  const uint64_t ended = clock_ticks();
  phase_ticks_ += ended - began;
  for (int worker = 0; worker < workers; ++worker)
    waited_ticks_ += ended - std::min(ended, workers_[static_cast<size_t>(worker)].done_at);
}

void ThreadPool::worker_loop(int worker) {
  Worker& self = workers_[static_cast<size_t>(worker)];
  uint32_t seen = 0;
  for (;;) {
    const int spins = spins_.load(std::memory_order_relaxed);
    for (int spin = 0; self.phase.load(std::memory_order_acquire) == seen && spin < spins; ++spin) _mm_pause();
    self.phase.wait(seen, std::memory_order_acquire);
    seen = self.phase.load(std::memory_order_acquire);
    if (stopping_) return;
    call_(context_, worker);
    self.done_at = clock_ticks();
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::deal(int64_t count, int64_t grain, int workers) {
  const int64_t pieces = (count + grain - 1) / grain;
  for (int worker = 0; worker < workers; ++worker) {
    Worker& to = workers_[static_cast<size_t>(worker)];
    to.next.store(pieces * worker / workers * grain, std::memory_order_relaxed);
    to.end = std::min(pieces * (worker + 1) / workers * grain, count);
  }
}

bool ThreadPool::take(int owner, int64_t grain, int64_t* begin, int64_t* end) {
  Worker& from = workers_[static_cast<size_t>(owner)];
  if (from.next.load(std::memory_order_relaxed) >= from.end) return false;
  *begin = from.next.fetch_add(grain, std::memory_order_relaxed);
  if (*begin >= from.end) return false;
  *end = std::min(*begin + grain, from.end);
  return true;
}

void ThreadPool::judge() {
  if (!adapt_) return;
  const uint64_t now = clock_ticks();
  const int workers = active();
  if (trying_) {
    if (phase_ticks_ >= kTrialMs * ticks_per_ms_) decide(now);
  } else if (workers < size_ && now - rested_since_ >= pause_ms_ * ticks_per_ms_) {
    trying_ = true;
    active_.store(workers + 1, std::memory_order_relaxed);
    phase_ticks_ = 0;
    waited_ticks_ = 0;
  } else if (phase_ticks_ >= kPeriodMs * ticks_per_ms_) {
    decide(now);
  }
}

void ThreadPool::decide(uint64_t now) {
  const int workers = active();
  const double loss = static_cast<double>(waited_ticks_) / (static_cast<double>(phase_ticks_) * workers);
  const bool fewer = workers > 1 && workers * (1 - loss) < workers - 1 + kWorthAWorker;
  spins_.store(loss > kContendedLoss ? kFewSpins : kSpins, std::memory_order_relaxed);
  if (fewer) {
    active_.store(workers - 1, std::memory_order_relaxed);
    if (!trying_) retreats_.fetch_add(1, std::memory_order_relaxed);
    pause_ms_ = trying_ ? std::min(2 * pause_ms_, kLongestPauseMs) : kPauseMs;
    rested_since_ = now;
  } else if (trying_) {
    pause_ms_ = kPauseMs;
    rested_since_ = now;
  }
  trying_ = false;
  phase_ticks_ = 0;
  waited_ticks_ = 0;
}

}  // namespace quire
