#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace quire {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "quire-mapped-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << text;
    return directory_ + "/" + name;
  }

  std::string directory_;
};

TEST_F(MappedFileTest, ShowsTheBytesUntilTheLastOwnerGoes) {
  const std::string path = write("a", "hello");
  auto opened = MappedFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  MappedFile moved = std::move(*opened);
  EXPECT_TRUE(opened->bytes().empty());
  EXPECT_EQ(moved.path(), path);
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);

  auto other = MappedFile::open(write("b", "bye"));
  ASSERT_TRUE(other.ok());
  moved = std::move(*other);
  ASSERT_EQ(moved.bytes().size(), 3u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "bye", 3), 0);
}

TEST_F(MappedFileTest, OpensAnEmptyFile) {
  const auto opened = MappedFile::open(write("empty", ""));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_TRUE(opened->bytes().empty());
}

TEST_F(MappedFileTest, RefusesWhatIsNotARegularFile) {
  const auto absent = MappedFile::open(directory_ + "/absent");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().code(), StatusCode::kNotFound);
  EXPECT_NE(absent.status().message().find(directory_ + "/absent"), std::string::npos);

  EXPECT_EQ(MappedFile::open(directory_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open("/dev/null").status().code(), StatusCode::kInvalidArgument);

  // Nobody writes to this pipe, so waiting for it would never end.
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(pipe).status().code(), StatusCode::kInvalidArgument);
}

constexpr size_t kPage = 4096;

size_t sum_of(std::span<const std::byte> bytes) {
  size_t sum = 0;
  for (const std::byte byte : bytes) sum += static_cast<size_t>(byte);
  return sum;
}

TEST_F(MappedFileTest, SaysWhatTellsItFromOthers) {
  const auto first = MappedFile::open(write("a", "hello"));
  const auto same = MappedFile::open(directory_ + "/a");
  ASSERT_TRUE(first.ok() && same.ok());
  EXPECT_EQ(first->version(), same->version());
  EXPECT_TRUE(first->version().starts_with("5 ")) << first->version();
  const std::string before = first->version();
  std::filesystem::last_write_time(directory_ + "/a", std::filesystem::file_time_type() + std::chrono::seconds(5));
  EXPECT_NE(MappedFile::open(directory_ + "/a")->version(), before);
  EXPECT_EQ(first->version(), before);
}

// Reads go on over zeros; that they did is found afterwards, and for good.
TEST_F(MappedFileTest, ATruncatedFileIsNamedAndEndsNothing) {
  for (const size_t left : {size_t{0}, size_t{100}, kPage, 3 * kPage + 17, 8 * kPage - 1}) {
    const std::string path = write("model", std::string(8 * kPage, 'x'));
    const auto file = MappedFile::open(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->unchanged().ok());
    std::filesystem::resize_file(path, left);
    EXPECT_EQ(sum_of(file->bytes()), left * 'x');  // also within the page where the file ends, where nothing faults
    for (int again = 0; again < 2; ++again) {
      const Status status = file->unchanged();
      EXPECT_EQ(status.code(), StatusCode::kIo);
      EXPECT_NE(status.message().find(path + ": was truncated while it was in use"), std::string::npos)
          << status.message();
    }
  }
}

TEST_F(MappedFileTest, AFileThatGrewAgainIsNotTakenForTheOldOne) {
  const std::string path = write("model", std::string(8 * kPage, 'x'));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  const auto then = std::filesystem::last_write_time(path);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(sum_of(file->bytes().subspan(3 * kPage)), 0u);
  write("model", std::string(8 * kPage, 'x'));
  EXPECT_FALSE(file->unchanged().ok());
  std::filesystem::last_write_time(path, then);  // nothing but the lost pages is left to see
  EXPECT_EQ(sum_of(file->bytes().first(3 * kPage)), 3 * kPage * 'x');
  const Status status = file->unchanged();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
}

TEST_F(MappedFileTest, AFileThatIsOverwrittenIsNamed) {
  const std::string path = write("model", "one text");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << "two";
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::milliseconds(5));
  const Status status = file->unchanged();
  EXPECT_NE(status.message().find(path + ": was changed while it was in use"), std::string::npos) << status.message();
}

TEST_F(MappedFileTest, AFileThatIsReplacedOrRemovedStaysAsItWas) {
  const std::string path = write("model", "one text");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::filesystem::rename(write("other", "another"), path);
  EXPECT_TRUE(file->unchanged().ok());
  std::filesystem::remove(path);
  EXPECT_TRUE(file->unchanged().ok());
  EXPECT_EQ(std::memcmp(file->bytes().data(), "one text", 8), 0);
}

// Many mappings that come and go, some of which are truncated while threads read them all.
TEST_F(MappedFileTest, OnlyTheTruncatedOnesAreNamed) {
  constexpr size_t kFiles = 24;
  for (int round = 0; round < 3; ++round) {
    std::vector<MappedFile> files;
    for (size_t i = 0; i < kFiles; ++i) {
      auto file = MappedFile::open(write(std::to_string(i), std::string(64 * kPage, 'x')));
      ASSERT_TRUE(file.ok());
      files.push_back(std::move(*file));
    }
    std::atomic<bool> stop{false};
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 3; ++reader) {
      readers.emplace_back([&] {
        while (!stop.load()) {
          for (const MappedFile& file : files) EXPECT_LE(sum_of(file.bytes()), 64 * kPage * 'x');
        }
      });
    }
    for (size_t i = 0; i < kFiles; i += 2) std::filesystem::resize_file(files[i].path(), i * kPage);
    stop.store(true);
    for (std::thread& reader : readers) reader.join();
    for (size_t i = 0; i < kFiles; ++i) EXPECT_EQ(files[i].unchanged().ok(), i % 2 == 1) << i;
  }
}

// A mapping that nobody guards: what its fault did before, it does still.
TEST_F(MappedFileTest, OtherBusErrorsEndTheProgramAsEver) {
  const std::string path = write("other", std::string(2 * kPage, 'x'));
  const auto guarded = MappedFile::open(write("model", "text"));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto* data = static_cast<const volatile char*>(::mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE, fd, 0));
  ASSERT_NE(data, MAP_FAILED);
  std::filesystem::resize_file(path, 0);
  EXPECT_DEATH({ [[maybe_unused]] const char byte = data[kPage]; }, "");
  EXPECT_DEATH(::kill(::getpid(), SIGBUS), "");
  ::munmap(const_cast<char*>(data), 2 * kPage);
  ::close(fd);
}

}  // namespace
}  // namespace quire
