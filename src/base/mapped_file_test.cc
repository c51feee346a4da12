#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

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

}  // namespace
}  // namespace quire
