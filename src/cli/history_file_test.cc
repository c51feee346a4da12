#include "cli/history_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace quire {
namespace {

namespace fs = std::filesystem;

class HistoryFileTest : public testing::Test {
 protected:
  HistoryFileTest() {
    std::string name = testing::TempDir() + "/quire-history-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = folder_ + "/state/history";
  }
  ~HistoryFileTest() override { fs::remove_all(folder_); }

  std::string folder_;
  std::string path_;
};

TEST_F(HistoryFileTest, ComesBackInOrder) {
  const HistoryFile file(path_);
  EXPECT_TRUE(file.load().value().empty());
  EXPECT_TRUE(file.append("first").ok());
  EXPECT_TRUE(file.append("two\nlines, \"quoted\" \xE4\xBD\xA0").ok());
  EXPECT_EQ(file.load().value(), (std::vector<std::string>{"first", "two\nlines, \"quoted\" \xE4\xBD\xA0"}));
}

TEST_F(HistoryFileTest, IsReadableByItsOwnerAlone) {
  EXPECT_TRUE(HistoryFile(path_).append("secret").ok());
  struct stat file {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((folder_ + "/state").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0700u);
}

TEST_F(HistoryFileTest, PassesOverWhatIsNoText) {
  fs::create_directories(folder_ + "/state");
  std::ofstream(path_) << "\"good\"\n{\"a\": 1}\nplain\n\"esc \\u001b[2J\"\n\xFF\xFE\n\"\"\n\"also good\"";
  EXPECT_EQ(HistoryFile(path_).load().value(), (std::vector<std::string>{"good", "also good"}));
}

TEST_F(HistoryFileTest, IsBounded) {
  const HistoryFile file(path_);
  EXPECT_TRUE(file.append(std::string(HistoryFile::kEntryBytes + 1, 'x')).ok());
  EXPECT_TRUE(file.load().value().empty());
  EXPECT_TRUE(file.append("first").ok());
  {
    std::ofstream out(path_);
    for (size_t i = 0; i < 2 * HistoryFile::kEntries + 1; ++i) out << "\"" << i << "\"\n";
  }
  const std::vector<std::string> entries = file.load().value();
  EXPECT_EQ(entries.size(), HistoryFile::kEntries);
  EXPECT_EQ(entries.back(), std::to_string(2 * HistoryFile::kEntries));
  EXPECT_LT(fs::file_size(path_), 8 * HistoryFile::kEntries);
}

TEST_F(HistoryFileTest, CanBeOffAndSaysWhyItFails) {
  EXPECT_EQ(history_path("off"), "");
  EXPECT_EQ(history_path("/x/y"), "/x/y");
  EXPECT_TRUE(HistoryFile("").append("x").ok());
  EXPECT_TRUE(HistoryFile("").load().value().empty());
  EXPECT_NE(HistoryFile("/dev/null/history").append("x").message().find("/dev/null"), std::string::npos);
}

}  // namespace
}  // namespace quire
