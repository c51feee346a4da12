// Threads for what takes long - reading, rendering and tokenizing what clients send - so that the I/O thread never does it.
//
// Jobs wait in one queue for each client and are taken from them in turn, so that a client with many jobs holds up only
// itself; and one thread is kept from long jobs, so that short ones never wait for them alone. Every queue is bounded. A job is handed a WorkBudget and must end soon after it is spent.
//
// Thread: any; jobs run on the pool's own threads, and what they own is destroyed there or by whoever drops them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/work_budget.h"

namespace quire {

struct WorkerLimits {
  size_t threads = 2;
  size_t waiting = 256;            // jobs, of all clients
  size_t waiting_of_client = 128;  // of one of them
  WorkBudget::Clock::duration job_time = std::chrono::seconds(30);
};

class WorkerPool {
 public:
  using Ticket = uint64_t;
  static constexpr Ticket kRefused = 0;
  // `ran_out_of_memory`: the job threw std::bad_alloc; called instead of the rest of it, on the same thread.
  struct Job {
    std::function<void(const WorkBudget&)> run;
    std::function<void()> ran_out_of_memory;
    bool is_long = false;
  };

  explicit WorkerPool(WorkerLimits limits);
  ~WorkerPool();  // calls off what runs, forgets what waits

  // kRefused: too much is waiting.
  Ticket add(uint64_t client, Job job);
  // Nobody wants the job any more: it is forgotten while it waits and called off while it runs.
  void drop(Ticket ticket);
  // Forgets what waits and calls off what runs; add() refuses from now on. Does not wait.
  void stop();

  size_t waiting() const;
  size_t refused() const;

 private:
  struct Waiting {
    Ticket ticket = 0;
    Job job;
  };
  struct Running {
    Ticket ticket = 0;
    std::shared_ptr<WorkBudget> budget;
    bool is_long = false;
  };

  void work();
  // Of `turns_`, the first whose next job may begin now; end(): none.
  std::deque<uint64_t>::iterator next_turn();

  const WorkerLimits limits_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<uint64_t, std::deque<Waiting>> queues_;  // by client and length; none is empty
  std::deque<uint64_t> turns_;                      // clients with jobs, whose turn is next first
  std::vector<Running> running_;
  size_t waiting_ = 0;
  size_t refused_ = 0;
  Ticket next_ticket_ = 1;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quire
