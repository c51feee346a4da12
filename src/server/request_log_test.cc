#include "server/request_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "json/json_value.h"

namespace quire {
namespace {

class RequestLogTest : public testing::Test {
 protected:
  RequestLogTest() : path_(testing::TempDir() + "quire-log-" + std::to_string(::getpid())) { ::unlink(path_.c_str()); }
  ~RequestLogTest() override { ::unlink(path_.c_str()); }

  std::string text() const {
    std::ifstream file(path_);
    std::stringstream content;
    content << file.rdbuf();
    return content.str();
  }
  // Of lines that are all JSON: how many there are, and how many they say were lost.
  std::pair<int64_t, int64_t> lines_and_losses() const {
    std::istringstream all(text());
    int64_t lines = 0, losses = 0;
    for (std::string line; std::getline(all, line); ++lines) {
      const auto parsed = JsonValue::parse(line);
      EXPECT_TRUE(parsed.ok()) << line;
      const JsonValue* lost = parsed.ok() ? parsed->find("dropped_lines_before") : nullptr;
      if (lost != nullptr) losses += *lost->as<int64_t>();
    }
    return {lines, losses};
  }

  const std::string path_;
};

TEST_F(RequestLogTest, WritesALineForEachRequestAndCutsLongPaths) {
  {
    const auto log = RequestLog::open(path_);
    ASSERT_TRUE(log.ok());
    (*log)->write({.path = std::string(100'000, 'x'), .status = 404});
    (*log)->note("ready", "model");
  }
  EXPECT_EQ(lines_and_losses(), (std::pair<int64_t, int64_t>{2, 0}));
  EXPECT_LT(text().size(), 1000u);
}

// A limit on the size of files stands for a disk that is full for a while.
TEST_F(RequestLogTest, HoldsWholeLinesWhenTheDiskIsFull) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  int64_t written = 0;
  const auto log = RequestLog::open(path_);
  ASSERT_TRUE(log.ok());
  const auto write = [&](int count) {
    for (int i = 0; i < count; ++i) (*log)->note("line", std::to_string(written++));
  };
  rlimit full = before;
  full.rlim_cur = 3333;
  setrlimit(RLIMIT_FSIZE, &full);
  write(200);
  const auto some_lost = [&] { return (*log)->lost() > 100; };
  for (int i = 0; i < 2000 && !some_lost(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(some_lost());
  setrlimit(RLIMIT_FSIZE, &before);
  write(50);
  const auto all_seen = [&] { return lines_and_losses().first + static_cast<int64_t>((*log)->lost()) == written; };
  for (int i = 0; i < 2000 && !all_seen(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto [lines, losses] = lines_and_losses();
  EXPECT_EQ(losses, static_cast<int64_t>((*log)->lost()));
  EXPECT_EQ(lines + losses, written);
}

TEST_F(RequestLogTest, AReaderThatStandsStillHoldsUpNothing) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  const auto began = std::chrono::steady_clock::now();
  {
    const auto log = RequestLog::open(path_);
    ASSERT_TRUE(log.ok());
    for (int i = 0; i < 100'000; ++i) (*log)->note("line", std::string(100, 'x'));
    EXPECT_GT((*log)->lost(), 0u) << "what waits is bounded";
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  ::close(reader);
}

}  // namespace
}  // namespace quire
