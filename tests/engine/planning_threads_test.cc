// Plans and descriptions of a model start no thread: they need the sizes of a device, not a device.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>

#include "capacity/memory_plan.h"
#include "capacity/model_setup.h"
#include "capacity/what_if.h"
#include "engine/generator.h"
#include "eval/subject.h"

namespace {

std::atomic<int> threads_started{0};

}  // namespace

// Stands before the C library's in this program, so it sees every thread however short its life.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  ++threads_started;
  return create(thread, attributes, start, argument);
}

namespace quire {
namespace {

ModelOptions options_of_three_threads() {
  ModelOptions options;
  options.model_path = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/llama-gqa-llama3rope";
  options.threads = 3;
  return options;
}

class PlanningThreads : public testing::Test {
 protected:
  PlanningThreads() : before_(threads_started) {}
  int started() const { return threads_started - before_; }
  const ModelOptions options_ = options_of_three_threads();

 private:
  const int before_;
};

TEST_F(PlanningThreads, ADeviceStartsTwoBesideTheCaller) {
  ASSERT_TRUE(make_device(options_).ok());
  EXPECT_EQ(started(), 2);
}

TEST_F(PlanningThreads, MemoryPlansStartNone) {
  const auto model = open_headers(options_);
  ASSERT_TRUE(model.ok());
  EXPECT_GT(plan_sequences(*model, 1).kv_bytes, 0);
  EXPECT_TRUE(plan_pool(*model, {.max_step_rows = 16, .max_seqs = 2}).ok());
  EXPECT_TRUE(what_if(*model).ok());
  EXPECT_EQ(started(), 0);
}

TEST_F(PlanningThreads, OpeningAGeneratorStartsNone) {
  auto generator = Generator::open(options_);
  ASSERT_TRUE(generator.ok()) << generator.status().message();
  EXPECT_NE((*generator)->compute_summary().find("3 threads"), std::string::npos);
  EXPECT_EQ(started(), 0);
}

TEST_F(PlanningThreads, OpeningAModelToJudgeStartsNone) {
  auto subject = EvalSubject::open(options_);
  ASSERT_TRUE(subject.ok()) << subject.status().message();
  EXPECT_TRUE((*subject)->planned_bytes(64).ok());
  EXPECT_EQ(started(), 0);
}

}  // namespace
}  // namespace quire
