// Notes of files that come from anywhere. Those that quire writes come back in checkpoint_writer_test.cc.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace quire {
namespace {

using testing_files::TempDir;

struct HostileNotes {
  const char* name;
  std::string words;
  std::string proof;      // JSON of quire.json's "proof"
  std::string k_factors;  // and of its "k_factors"
};

class HostileNotesTest : public testing::TestWithParam<HostileNotes> {};

TEST_P(HostileNotesTest, AreRefusedInADirectory) {
  const TempDir dir;
  dir.write("config.json", testing_files::small_llama_config());
  dir.write("model.safetensors", testing_files::safetensors_bytes(testing_files::small_llama_tensors()));
  dir.write("quire.json", "{\"proof\": " + GetParam().proof + ", \"k_factors\": " + GetParam().k_factors + "}");
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("quire.json"), std::string::npos) << opened.status().message();
  EXPECT_NE(opened.status().message().find(GetParam().words), std::string::npos) << opened.status().message();
}

// One layer, one key head, four elements.
INSTANTIATE_TEST_SUITE_P(
    Notes, HostileNotesTest,
    testing::Values(HostileNotes{"proof_no_object", "\"proof\" is not an object", "[1]", "[]"},
                    HostileNotes{"proof_too_long", "at most 65536 are read",
                                 "{\"a\": \"" + std::string(65536, 'x') + "\"}", "[]"},
                    HostileNotes{"factors_no_array", "\"k_factors\" is not an array", "{}", "3"},
                    HostileNotes{"factors_text", "something that is not a number", "{}", "[1, 1, \"1\", 1]"},
                    HostileNotes{"factors_too_few", "holds 3 factors of K, not the 4", "{}", "[1, 1, 1]"},
                    HostileNotes{"factors_too_many", "holds 5 factors of K, not the 4", "{}", "[1, 1, 1, 1, 1]"},
                    HostileNotes{"factor_zero", "not a positive number", "{}", "[1, 0, 1, 1]"},
                    HostileNotes{"factor_negative", "not a positive number", "{}", "[1, 1, -1, 1]"},
                    HostileNotes{"factor_infinite_as_float", "not a positive number", "{}", "[1, 1, 1, 1e300]"},
                    HostileNotes{"factor_tiny", "not a positive number", "{}", "[1, 1, 1, 1e-42]"},
                    HostileNotes{"no_json", "quire.json", "{", "[]"},
                    HostileNotes{"number_out_of_range", "quire.json", "{}", "[1, 1, 1, 1e999]"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(CheckpointNotes, HostileValuesOfGgufAreRefused) {
  using namespace testing_files;  // NOLINT: values of metadata
  const std::vector<std::pair<std::string, std::string>> values = {
      {"quire.proof", u32_value(1)},
      {"quire.proof", string_value("{} {}")},
      {"quire.proof", string_value("[1]")},
      {"quire.proof", string_value("{\"a\": \"" + std::string(65536, 'x') + "\"}")},
      {"quire.k_factors", string_value("1")},
      {"quire.k_factors", ints_value({1, 1, 1, 1})},
      {"quire.k_factors", floats_value({1, 1, 1})},
      {"quire.k_factors", floats_value({1, 1, 1, -1})},
      {"quire.k_factors", floats_value({1, 1, 1, std::numeric_limits<float>::quiet_NaN()})},
      {"quire.k_factors", floats_value({1, 1, std::numeric_limits<float>::infinity(), 1})}};
  for (const auto& [key, value] : values) {
    const TempDir dir;
    Gguf model = small_llama_gguf();
    model.set(key, value);
    const auto opened = Checkpoint::open(dir.write("model.gguf", model.bytes()));
    ASSERT_FALSE(opened.ok()) << key;
    EXPECT_NE(opened.status().message().find(key), std::string::npos) << opened.status().message();
  }
  const TempDir dir;
  Gguf model = small_llama_gguf();
  model.set("quire.proof", string_value("      "));
  model.set("quire.k_factors", floats_value({0, 0, 0, 0}));
  const auto none = Checkpoint::open(dir.write("model.gguf", model.bytes()));
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_TRUE((*none)->notes().proof.empty());
  EXPECT_TRUE((*none)->notes().k_factors.empty());
}

}  // namespace
}  // namespace quire
