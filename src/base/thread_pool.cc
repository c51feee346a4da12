#include "base/thread_pool.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace quire {
namespace {

// About 50 microseconds of PAUSE on current x86 cores: longer than the gaps inside a step, shorter than anything a
// person or a power meter would notice.
constexpr int kSpins = 1500;

}  // namespace

ThreadPool::ThreadPool(int threads) : shares_(new Share[static_cast<size_t>(std::max(threads, 1))]) {
  workers_.reserve(static_cast<size_t>(std::max(threads, 1) - 1));
  for (int worker = 1; worker < threads; ++worker) workers_.emplace_back([this, worker] { worker_loop(worker); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_phase(Call call, void* context) {
  if (workers_.empty()) {
    call(context, 0);
    return;
  }
  call_ = call;
  context_ = context;
  unfinished_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
  call(context, 0);
  for (int spin = 0; unfinished_.load(std::memory_order_acquire) != 0; ++spin) {
    // A worker that lost its core needs this one's: stop burning it.
    if (spin < kSpins)
      _mm_pause();
    else
      sched_yield();
  }
}

void ThreadPool::worker_loop(int worker) {
  uint32_t seen = 0;
  for (;;) {
    for (int spin = 0; phase_.load(std::memory_order_acquire) == seen && spin < kSpins; ++spin) _mm_pause();
    phase_.wait(seen, std::memory_order_acquire);
    seen = phase_.load(std::memory_order_acquire);
    if (stopping_) return;
    call_(context_, worker);
    unfinished_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::deal(int64_t count, int64_t grain) {
  const int64_t pieces = (count + grain - 1) / grain;
  for (int worker = 0; worker < size(); ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    share.next.store(pieces * worker / size() * grain, std::memory_order_relaxed);
    share.end = std::min(pieces * (worker + 1) / size() * grain, count);
  }
}

bool ThreadPool::take(int owner, int64_t grain, int64_t* begin, int64_t* end) {
  Share& share = shares_[static_cast<size_t>(owner)];
  if (share.next.load(std::memory_order_relaxed) >= share.end) return false;
  *begin = share.next.fetch_add(grain, std::memory_order_relaxed);
  if (*begin >= share.end) return false;
  *end = std::min(*begin + grain, share.end);
  return true;
}

int ThreadPool::usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period_us = 0;
  if (quota_file >> quota >> period_us && quota != "max" && period_us > 0) {
    const double limit = std::strtod(quota.c_str(), nullptr) / period_us;
    cores = std::min(cores, std::max(1, static_cast<int>(limit + 0.5)));
  }
  return std::max(cores, 1);
}

}  // namespace quire
