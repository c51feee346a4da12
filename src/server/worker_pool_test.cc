#include "server/worker_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <new>
#include <string>

namespace quire {
namespace {

WorkerPool::Job job(std::function<void(const WorkBudget&)> run, bool is_long = false) {
  return {std::move(run), [] {}, is_long};
}

// Holds the pool's only thread until it is let go.
class Gate {
 public:
  explicit Gate(WorkerPool& pool) {
    ticket_ = pool.add(0, job([this](const WorkBudget& budget) {
                         entered_.set_value();
                         while (!open_.load() && !budget.spent()) std::this_thread::yield();
                       }));
    entered_.get_future().wait();
  }
  void open() { open_.store(true); }
  WorkerPool::Ticket ticket() const { return ticket_; }

 private:
  std::promise<void> entered_;
  std::atomic<bool> open_{false};
  WorkerPool::Ticket ticket_;
};

TEST(WorkerPool, TakesClientsInTurn) {
  std::string order;
  std::promise<void> done;
  WorkerPool pool({.threads = 1});
  Gate gate(pool);
  for (const char name : {'a', 'b', 'c'}) pool.add(1, job([&order, name](const WorkBudget&) { order += name; }));
  pool.add(2, job([&order](const WorkBudget&) { order += 'X'; }));
  pool.add(1, job([&done](const WorkBudget&) { done.set_value(); }));
  EXPECT_EQ(pool.waiting(), 5u);
  gate.open();
  done.get_future().wait();
  EXPECT_EQ(order, "aXbc");
}

TEST(WorkerPool, KeepsAThreadForShortJobs) {
  std::promise<void> done;
  std::atomic<int> at_once{0};
  std::atomic<bool> open{false};
  WorkerPool pool({.threads = 2});
  for (int i = 0; i < 3; ++i) {
    pool.add(1, job(
                    [&](const WorkBudget& budget) {
                      EXPECT_EQ(++at_once, 1);
                      while (!open.load() && !budget.spent()) std::this_thread::yield();
                      --at_once;
                    },
                    true));
  }
  pool.add(1, job([&](const WorkBudget&) { done.set_value(); }));
  done.get_future().wait();
  open.store(true);
}

TEST(WorkerPool, RefusesWhatItHasNoRoomFor) {
  WorkerPool pool({.threads = 1, .waiting = 3, .waiting_of_client = 2});
  Gate gate(pool);
  const auto nothing = [] { return job([](const WorkBudget&) {}); };
  EXPECT_NE(pool.add(1, nothing()), WorkerPool::kRefused);
  EXPECT_NE(pool.add(1, nothing()), WorkerPool::kRefused);
  EXPECT_EQ(pool.add(1, nothing()), WorkerPool::kRefused) << "its share is used up";
  EXPECT_NE(pool.add(2, nothing()), WorkerPool::kRefused);
  EXPECT_EQ(pool.add(3, nothing()), WorkerPool::kRefused) << "the queue is full";
  EXPECT_EQ(pool.refused(), 2u);
  gate.open();
}

TEST(WorkerPool, ForgetsWhatNobodyWantsAndCallsOffWhatRuns) {
  std::promise<void> done;
  WorkerPool pool({.threads = 1});
  Gate gate(pool);
  bool ran = false;
  const auto kept = std::make_shared<int>(1);
  const WorkerPool::Ticket unwanted = pool.add(1, job([&ran, kept](const WorkBudget&) { ran = true; }));
  pool.add(1, job([&done](const WorkBudget&) { done.set_value(); }));
  EXPECT_EQ(kept.use_count(), 2);
  pool.drop(unwanted);
  EXPECT_EQ(kept.use_count(), 1) << "what it held is freed at once";
  pool.drop(gate.ticket());
  done.get_future().wait();
  EXPECT_FALSE(ran);
}

TEST(WorkerPool, StopsWhateverRuns) {
  WorkerPool pool({.threads = 1});
  Gate gate(pool);
  pool.add(1, job([](const WorkBudget&) { ADD_FAILURE() << "nothing begins any more"; }));
  pool.stop();
  EXPECT_EQ(pool.waiting(), 0u);
  EXPECT_EQ(pool.add(1, job([](const WorkBudget&) {})), WorkerPool::kRefused);
}

TEST(WorkerPool, SaysWhenMemoryRanOut) {
  std::promise<void> heard;
  std::promise<void> next;
  WorkerPool pool({.threads = 1});
  pool.add(1, {[](const WorkBudget&) { throw std::bad_alloc(); }, [&heard] { heard.set_value(); }});
  heard.get_future().wait();
  pool.add(1, job([&next](const WorkBudget&) { next.set_value(); }));
  next.get_future().wait();
}

TEST(WorkerPool, LimitsTheTimeOfAJob) {
  std::promise<bool> spent;
  WorkerPool pool({.threads = 1, .job_time = std::chrono::milliseconds(1)});
  pool.add(1, job([&spent](const WorkBudget& budget) {
             while (!budget.spent()) std::this_thread::yield();
             spent.set_value(true);
           }));
  EXPECT_TRUE(spent.get_future().get());
}

}  // namespace
}  // namespace quire
