#include "hub/local_models.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace quire {
namespace {

namespace fs = std::filesystem;

class LocalModelsTest : public testing::Test {
 protected:
  LocalModelsTest() {
    std::string name = testing::TempDir() + "/quire-models-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LocalModelsTest() override { fs::remove_all(folder_); }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories(fs::path(folder_ + "/" + file).parent_path());
    std::ofstream(folder_ + "/" + file) << text;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const LocalModel& model : local_models(folder_)) all.push_back(model.name);
    return all;
  }

  std::string folder_;
};

TEST_F(LocalModelsTest, HaveTheNamesThatPeopleUse) {
  write("smollm2-135m-instruct-q4_1.gguf", "12345");
  write("mine.gguf", "123");
  write("big-00001-of-00002.gguf", "12");
  write("big-00002-of-00002.gguf", "1234");
  write("folder/config.json", "{}");
  write("folder/model.safetensors", "1234567");
  write("notes.txt", "no model");
  write("empty/readme", "no model");
  write(".pull-x/joined.gguf", "unfinished");
  EXPECT_EQ(names(), (std::vector<std::string>{"big", "folder", "mine", "smollm2-135m-instruct"}));
  EXPECT_EQ(find_local(folder_, "big")->bytes, 6);
  EXPECT_EQ(find_local(folder_, "big")->path, folder_ + "/big-00001-of-00002.gguf");
  EXPECT_EQ(find_local(folder_, "folder")->bytes, 9);
  EXPECT_GT(find_local(folder_, "mine")->changed_s, 1'000'000'000);
  EXPECT_FALSE(find_local(folder_, "nothing").has_value());
  EXPECT_FALSE(find_local(folder_, "..").has_value());
}

TEST_F(LocalModelsTest, AreRemovedWhole) {
  write("big-00001-of-00002.gguf", "12");
  write("big-00002-of-00002.gguf", "1234");
  write("folder/config.json", "{}");
  write("kept.gguf", "1");
  EXPECT_TRUE(remove_local(*find_local(folder_, "big")).ok());
  EXPECT_TRUE(remove_local(*find_local(folder_, "folder")).ok());
  EXPECT_EQ(names(), std::vector<std::string>{"kept"});
}

TEST_F(LocalModelsTest, OfALinkOnlyTheLinkIsRemoved) {
  write("elsewhere/model.safetensors", "1");
  write("elsewhere/config.json", "{}");
  const std::string models = folder_ + "/models";
  fs::create_directories(models);
  fs::create_directory_symlink(folder_ + "/elsewhere", models + "/linked");
  EXPECT_TRUE(remove_local(*find_local(models, "linked")).ok());
  EXPECT_TRUE(fs::exists(folder_ + "/elsewhere/config.json"));
  EXPECT_TRUE(local_models(models).empty());
}

TEST_F(LocalModelsTest, NoFolderHasNone) { EXPECT_TRUE(local_models(folder_ + "/absent").empty()); }

}  // namespace
}  // namespace quire
