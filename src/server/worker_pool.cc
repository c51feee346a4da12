#include "server/worker_pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace quire {
namespace {

// What is being answered goes before what is yet to be read.
void step_back() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNice);
}

}  // namespace

WorkerPool::WorkerPool(WorkerLimits limits) : limits_(limits) {
  for (size_t i = 0; i < limits.threads; ++i) threads_.emplace_back([this] { work(); });
}

WorkerPool::~WorkerPool() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

WorkerPool::Ticket WorkerPool::add(uint64_t client, Job job) {
  const std::lock_guard lock(mutex_);
  client = client * 2 + job.is_long;  // its short jobs do not wait for its long ones
  const auto found = queues_.find(client);
  const size_t own = found == queues_.end() ? 0 : found->second.size();
  if (stopping_ || waiting_ >= limits_.waiting || own >= limits_.waiting_of_client) {
    ++refused_;
    return kRefused;
  }
  const Ticket ticket = next_ticket_++;
  std::deque<Waiting>& queue = queues_[client];
  queue.push_back({ticket, std::move(job)});
  if (own == 0) turns_.push_back(client);
  ++waiting_;
  changed_.notify_one();
  return ticket;
}

void WorkerPool::drop(Ticket ticket) {
  Job dropped;  // destroyed after the lock is given up
  const std::lock_guard lock(mutex_);
  for (const Running& running : running_) {
    if (running.ticket == ticket) return running.budget->cancel();
  }
  for (auto& [client, queue] : queues_) {
    const auto found = std::ranges::find(queue, ticket, &Waiting::ticket);
    if (found == queue.end()) continue;
    dropped = std::move(found->job);
    queue.erase(found);
    --waiting_;
    if (queue.empty()) {
      std::erase(turns_, client);
      queues_.erase(client);
    }
    return;
  }
}

void WorkerPool::stop() {
  std::map<uint64_t, std::deque<Waiting>> dropped;  // destroyed after the lock is given up
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  dropped.swap(queues_);
  turns_.clear();
  waiting_ = 0;
  for (const Running& running : running_) running.budget->cancel();
  changed_.notify_all();
}

size_t WorkerPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

size_t WorkerPool::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

std::deque<uint64_t>::iterator WorkerPool::next_turn() {
  const auto long_ones = static_cast<size_t>(std::ranges::count_if(running_, &Running::is_long));
  const bool may_be_long = limits_.threads == 1 || long_ones + 1 < limits_.threads;
  return std::ranges::find_if(turns_,
                              [&](uint64_t client) { return may_be_long || !queues_.at(client).front().job.is_long; });
}

void WorkerPool::work() {
  step_back();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || next_turn() != turns_.end(); });
    if (stopping_) return;
    const auto turn = next_turn();
    const uint64_t client = *turn;
    turns_.erase(turn);
    const auto queue = queues_.find(client);
    Waiting taken = std::move(queue->second.front());
    queue->second.pop_front();
    --waiting_;
    if (queue->second.empty()) {
      queues_.erase(queue);
    } else {
      turns_.push_back(client);
    }
    const auto budget = std::make_shared<WorkBudget>(limits_.job_time);
    running_.push_back({taken.ticket, budget, taken.job.is_long});
    lock.unlock();
    try {
      taken.job.run(*budget);
    } catch (const std::bad_alloc&) {
      taken.job.ran_out_of_memory();
    }
    taken.job = {};
    lock.lock();
    std::erase_if(running_, [&](const Running& running) { return running.ticket == taken.ticket; });
    changed_.notify_all();  // a long job may begin now
  }
}

}  // namespace quire
