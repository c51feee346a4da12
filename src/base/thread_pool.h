// A fixed set of threads that run one phase at a time. The caller of run() is worker 0 and takes part.
//
// Between phases the other workers spin for a short while (a phase of a decode step lasts tens of microseconds, a
// futex wake-up about fifty), then sleep. Results must not depend on which worker runs what: parallel_for deals
// ranges of independent items, first a worker's own share (memory it touched before), then what others left.
//
// Thread: run() and parallel_for() from one thread at a time, and not from inside a phase.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace quire {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // at least 1, the caller included
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(worker) once on every worker and returns when all are done.
  template <typename Body>
  void run(Body&& body) {
    auto call = [](void* context, int worker) { (*static_cast<std::remove_reference_t<Body>*>(context))(worker); };
    run_phase(call, const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Calls body(begin, end, worker) over [0, count) in pieces of at most `grain` items, each exactly once.
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) {
    if (count <= 0) return;
    if (size() == 1 || count <= grain) {
      for (int64_t begin = 0; begin < count; begin += grain)
        body(begin, begin + grain < count ? begin + grain : count, 0);
      return;
    }
    deal(count, grain);
    run([&](int worker) {
      int64_t begin = 0;
      int64_t end = 0;
      for (int i = 0; i < size(); ++i) {
        const int owner = (worker + i) % size();
        while (take(owner, grain, &begin, &end)) body(begin, end, worker);
      }
    });
  }

  // The cores this process may use: its affinity mask, cut by a cgroup's CPU quota.
  static int usable_cores();

 private:
  using Call = void (*)(void* context, int worker);
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void run_phase(Call call, void* context);
  void worker_loop(int worker);
  void deal(int64_t count, int64_t grain);
  bool take(int owner, int64_t grain, int64_t* begin, int64_t* end);

  std::vector<std::thread> workers_;
  std::unique_ptr<Share[]> shares_;
  Call call_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> phase_{0};
  alignas(64) std::atomic<int> unfinished_{0};
  bool stopping_ = false;
};

}  // namespace quire
