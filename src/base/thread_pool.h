// A fixed set of threads that run one phase at a time. The caller of run() is worker 0 and takes part.
//
// Between phases the other workers spin for a short while (a phase of a decode step lasts tens of microseconds, a
// futex wake-up about fifty), then sleep. Results must not depend on which worker runs what: parallel_for deals
// ranges of independent items, first a worker's own share (memory it touched before), then what others left.
//
// Noisy neighbours. When another program takes a core, the worker on it stands still with an item in its hands and all
// others wait for it at the end of the phase. parallel_for measures that waiting. While it is so much that fewer workers
// would do more, the last ones sleep; every now and then they are tried again. Workers also stop spinning early then.
//
// Thread: run() and parallel_for() from one thread at a time, and not from inside a phase.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace quire {

class ThreadPool {
 public:
  // At least 1, the caller included. `adapt`: use fewer in parallel_for while others take cores.
  explicit ThreadPool(int threads, bool adapt = true);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }
  // Workers that parallel_for uses now. Any thread.
  int active() const { return active_.load(std::memory_order_relaxed); }
  // Times that it went down. Any thread.
  int64_t retreats() const { return retreats_.load(std::memory_order_relaxed); }

  // Calls body(worker) once on every worker and returns when all are done.
  template <typename Body>
  void run(Body&& body) {
    run_phase(call_of<Body>(), context_of(body), size());
  }

  // Calls body(begin, end, worker) over [0, count) in pieces of at most `grain` items, each exactly once.
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) {
    if (count <= 0) return;
    const int workers = active();
    if (workers == 1 || count <= grain) {
      for (int64_t begin = 0; begin < count; begin += grain)
        body(begin, begin + grain < count ? begin + grain : count, 0);
      if (workers < size()) judge();
      return;
    }
    deal(count, grain, workers);
    const auto work = [&](int worker) {
      int64_t begin = 0;
      int64_t end = 0;
      for (int i = 0; i < workers; ++i) {
        const int owner = (worker + i) % workers;
        while (take(owner, grain, &begin, &end)) body(begin, end, worker);
      }
    };
    run_phase(call_of<decltype(work)>(), context_of(work), workers);
    judge();
  }

 private:
  using Call = void (*)(void* context, int worker);
  struct alignas(64) Worker {
    std::atomic<uint32_t> phase{0};
    uint64_t done_at = 0;  // clock ticks when it ended its part of the phase
    // Its share of the items of parallel_for.
    alignas(64) std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  template <typename Body>
  static Call call_of() {
    return [](void* context, int worker) { (*static_cast<std::remove_reference_t<Body>*>(context))(worker); };
  }
  template <typename Body>
  static void* context_of(Body& body) {
    return const_cast<void*>(static_cast<const void*>(&body));
  }

  void run_phase(Call call, void* context, int workers);
  void worker_loop(int worker);
  void deal(int64_t count, int64_t grain, int workers);
  bool take(int owner, int64_t grain, int64_t* begin, int64_t* end);
  void judge();
  void decide(uint64_t now);

  const int size_;
  const bool adapt_;
  std::unique_ptr<Worker[]> workers_;
  std::vector<std::thread> threads_;
  Call call_ = nullptr;
  void* context_ = nullptr;
  bool stopping_ = false;
  alignas(64) std::atomic<int> unfinished_{0};

  std::atomic<int> active_;
  std::atomic<int64_t> retreats_{0};
  std::atomic<int> spins_;
  // Worker 0 only.
  uint64_t ticks_per_ms_ = 0;
  uint64_t phase_ticks_ = 0;   // of the phases since the last decision, and
  uint64_t waited_ticks_ = 0;  // of all their workers, waiting for the last one
  bool trying_ = false;        // one worker more than before, to see whether that is better again
  uint64_t rested_since_ = 0;  // when fewer were last found better
  uint64_t pause_ms_ = 0;      // from then to the next try
};

}  // namespace quire
