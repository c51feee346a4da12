#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace quire {
namespace {

TEST(ThreadPool, RunsEveryWorkerOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(threads));
      pool.run([&](int worker) { calls[static_cast<size_t>(worker)]++; });
      for (auto& count : calls) EXPECT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPool, ParallelForCoversEachItemOnce) {
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1001}) {
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_LT(worker, threads);
          EXPECT_LE(end - begin, grain);
          for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)]++;
        });
        for (auto& hit : hits) EXPECT_EQ(hit.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, WakesAfterSleeping) {
  ThreadPool pool(2);
  std::atomic<int> total{0};
  for (int round = 0; round < 3; ++round) {
    // Long enough a caller-only stretch for the worker to leave its spin loop.
    std::atomic<int64_t> burn{0};
    for (int64_t i = 0; i < 20'000'000; ++i) burn.fetch_add(1, std::memory_order_relaxed);
    pool.run([&](int) { total++; });
  }
  EXPECT_EQ(total.load(), 6);
}

// A phase whose second worker takes eight times as long as the first, on a busy machine too: each keeps its item until
// the other has one, and the second reads the first one's time off the clock.
void run_lopsided(ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  ASSERT_EQ(pool.active(), 2);
  std::atomic<bool> second_began{false};
  std::atomic<int64_t> first_took{0};
  const Clock::time_point began = Clock::now();
  const auto elapsed = [&] { return (Clock::now() - began).count(); };
  pool.parallel_for(2, 1, [&](int64_t begin, int64_t, int) {
    if (begin == 0) {
      while (!second_began) std::this_thread::yield();
      first_took = elapsed();
    } else {
      second_began = true;
      while (first_took == 0 || elapsed() < 8 * first_took) std::this_thread::yield();
    }
  });
}

TEST(ThreadPool, TakesFewerWorkersWhileOneHoldsUpTheOthers) {
  ThreadPool pool(2);
  for (int round = 0; round < 10'000 && pool.retreats() == 0; ++round) run_lopsided(pool);
  EXPECT_EQ(pool.retreats(), 1);
  EXPECT_EQ(pool.active(), 1);
}

TEST(ThreadPool, StaysAsItIsWhenTold) {
  ThreadPool pool(2, false);
  // Four times as long as a decision takes.
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(100)) run_lopsided(pool);
  EXPECT_EQ(pool.active(), 2);
  EXPECT_EQ(pool.retreats(), 0);
}

}  // namespace
}  // namespace quire
