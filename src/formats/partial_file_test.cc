#include "formats/partial_file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "formats/partial_directory.h"
#include "formats/test_files.h"

namespace quire {
namespace {

using testing_files::TempDir;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

void expect_failure(const Status& status, StatusCode code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

// Files of this process may not become larger while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() { EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0); }

 private:
  rlimit before_{};
};

// A disk of its own; only root can have one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path, const char* size) : path_(path) {
    std::filesystem::create_directories(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(PartialFile, HasItsNameOnlyWhenItIsWhole) {
  const TempDir dir;
  const std::string path = dir.path() + "/model";
  auto file = PartialFile::create(path, 10);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->write(6, bytes_of("tail")).ok());
  ASSERT_TRUE(file->write(0, bytes_of("head")).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(contents(path), std::string("head\0\0tail", 10));
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(PartialFile, LeavesNothingUnlessFinished) {
  const TempDir dir;
  {
    auto file = PartialFile::create(dir.path() + "/model", 10);
    ASSERT_TRUE(file.ok());
    const PartialFile moved = std::move(*file);
    EXPECT_EQ(entries(dir.path()), 1u);
  }
  EXPECT_EQ(entries(dir.path()), 0u);
}

TEST(PartialFile, NeverReplacesAFile) {
  const TempDir dir;
  const std::string path = dir.write("model", "mine");
  expect_failure(PartialFile::create(path, 1).status(), StatusCode::kInvalidArgument, "is not overwritten");

  const std::string late = dir.path() + "/late";
  auto file = PartialFile::create(late, 1);
  ASSERT_TRUE(file.ok());
  dir.write("late", "mine");
  expect_failure(file->finish(), StatusCode::kInvalidArgument, "has appeared meanwhile");
  EXPECT_EQ(contents(late), "mine");
}

TEST(PartialFile, OneWriterAtATimeAndLeftoversAreReused) {
  const TempDir dir;
  const std::string path = dir.path() + "/model";
  dir.write("model.partial", "what a stopped program left, longer than the new file");
  auto file = PartialFile::create(path, 4);
  ASSERT_TRUE(file.ok()) << file.status().message();
  expect_failure(PartialFile::create(path, 4).status(), StatusCode::kInvalidArgument, "another program is writing");
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(contents(path), std::string(4, '\0'));
}

TEST(PartialFile, WhatIsNoFileStays) {
  const TempDir dir;
  const std::string fifo = dir.path() + "/model.partial";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_failure(PartialFile::create(dir.path() + "/model", 4).status(), StatusCode::kInvalidArgument,
                 "is in the way and not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST(PartialFile, SaysThatTheFolderIsMissing) {
  const TempDir dir;
  expect_failure(PartialFile::create(dir.path() + "/none/model", 1).status(), StatusCode::kNotFound, "make it first");
}

TEST(PartialFile, AFileThatIsTooLargeIsKnownAtOnce) {
  const TempDir dir;
  const FileSizeLimit limit(1000);
  expect_failure(PartialFile::create(dir.path() + "/model", 1001).status(), StatusCode::kResourceExhausted,
                 "the file takes 1001 bytes, more than the limit on a file's size");
  EXPECT_EQ(entries(dir.path()), 0u);
}

TEST(PartialFile, AWriteThatFailsIsAnError) {
  const TempDir dir;
  {
    auto file = PartialFile::create(dir.path() + "/model", 2000);
    ASSERT_TRUE(file.ok());
    const FileSizeLimit limit(1000);
    const std::vector<std::byte> bytes(500);
    EXPECT_TRUE(file->write(0, bytes).ok());
    // The first half of it fits: a short write.
    expect_failure(file->write(750, bytes), StatusCode::kResourceExhausted, "/model: cannot be written");
  }
  EXPECT_EQ(entries(dir.path()), 0u);
}

TEST(PartialFile, AFullDiskIsKnownAtOnceAndSpaceThatIsSetAsideStays) {
  const TempDir dir;
  const std::string disk = dir.path() + "/disk";
  const SmallDisk small(disk, "1m");
  if (!small.mounted()) GTEST_SKIP() << "no disk of a chosen size without the right to mount one";
  const auto too_large = PartialFile::create(disk + "/model", 2 << 20);
  expect_failure(too_large.status(), StatusCode::kResourceExhausted, "the file takes 2097152 bytes, and ");
  expect_failure(too_large.status(), StatusCode::kResourceExhausted, "make room, or write to another disk");
  EXPECT_EQ(entries(disk), 0u);

  auto file = PartialFile::create(disk + "/model", 512 << 10);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::ofstream(disk + "/other") << std::string(1 << 20, 'x');  // fills the rest
  const std::vector<std::byte> bytes(512 << 10);
  EXPECT_TRUE(file->write(0, bytes).ok());
  EXPECT_TRUE(file->finish().ok());
  EXPECT_EQ(std::filesystem::file_size(disk + "/model"), bytes.size());
}

TEST(PartialDirectory, HasItsNameOnlyWhenItIsWhole) {
  const TempDir dir;
  const std::string path = dir.path() + "/model";
  std::filesystem::create_directory(path);  // an empty one is no obstacle
  auto directory = PartialDirectory::create(path + "/");
  ASSERT_TRUE(directory.ok()) << directory.status().message();
  ASSERT_TRUE(write_text_file(directory->file("config.json"), "{}").ok());
  EXPECT_EQ(entries(path), 0u);
  ASSERT_TRUE(directory->finish().ok());
  EXPECT_EQ(contents(path + "/config.json"), "{}");
  EXPECT_EQ(entries(dir.path()), 1u);
}

TEST(PartialDirectory, LeavesNothingUnlessFinishedAndReplacesNothing) {
  const TempDir dir;
  {
    auto directory = PartialDirectory::create(dir.path() + "/model");
    ASSERT_TRUE(directory.ok());
    ASSERT_TRUE(write_text_file(directory->file("config.json"), "{}").ok());
    expect_failure(PartialDirectory::create(dir.path() + "/model").status(), StatusCode::kInvalidArgument,
                   "another program is writing");
  }
  EXPECT_EQ(entries(dir.path()), 0u);
  dir.write("full/config.json", "{}");
  expect_failure(PartialDirectory::create(dir.path() + "/full").status(), StatusCode::kInvalidArgument,
                 "is not overwritten");

  auto late = PartialDirectory::create(dir.path() + "/late");
  ASSERT_TRUE(late.ok());
  dir.write("late/config.json", "mine");
  expect_failure(late->finish(), StatusCode::kInvalidArgument, "has appeared meanwhile");
  EXPECT_EQ(contents(dir.path() + "/late/config.json"), "mine");
}

TEST(PartialDirectory, RefusesWhatRenamingCannotReplace) {
  const TempDir dir;
  for (const std::string& path : {std::string(), std::string("/"), std::string("."), dir.path() + "/.."}) {
    expect_failure(PartialDirectory::create(path).status(), StatusCode::kInvalidArgument, "is no name for");
  }
  expect_failure(PartialDirectory::create(dir.path() + "/none/model").status(), StatusCode::kNotFound, "make it first");
  expect_failure(PartialDirectory::create(dir.write("file", "mine")).status(), StatusCode::kInvalidArgument,
                 "is not overwritten");
  const SmallDisk disk(dir.path() + "/disk", "1m");
  if (!disk.mounted()) GTEST_SKIP() << "no disk to replace without the right to mount one";
  expect_failure(PartialDirectory::create(dir.path() + "/disk").status(), StatusCode::kInvalidArgument,
                 "is where a disk is mounted");
}

TEST(PartialDirectory, RemovesWhatAWriterLeftAndNothingElse) {
  const TempDir dir;
  dir.write("model.partial/config.json", "stale");
  dir.write("model.partial/model.safetensors.partial", "stale");
  auto directory = PartialDirectory::create(dir.path() + "/model");
  ASSERT_TRUE(directory.ok()) << directory.status().message();
  ASSERT_TRUE(directory->finish().ok());
  EXPECT_EQ(entries(dir.path() + "/model"), 0u);

  dir.write("other.partial/photos/cat.jpg", "mine");
  expect_failure(PartialDirectory::create(dir.path() + "/other").status(), StatusCode::kInvalidArgument,
                 "holds photos, which no writer left");
  EXPECT_EQ(contents(dir.path() + "/other.partial/photos/cat.jpg"), "mine");
}

}  // namespace
}  // namespace quire
