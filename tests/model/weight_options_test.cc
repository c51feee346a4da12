// How weights are loaded: packed ones kept in a file, and a head repacked in a smaller type.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "formats/safetensors_file.h"
#include "support/test_model.h"

namespace quire {
namespace {

class WeightOptionsTest : public testing::Test {
 protected:
  WeightOptionsTest() : folder_(std::filesystem::path(testing::TempDir()) / ("weights-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::iota(ids_.begin(), ids_.end(), 5);
  }
  ~WeightOptionsTest() override { std::filesystem::remove_all(folder_); }

  std::string packed() const { return folder_ / "model.packed"; }
  Result<std::unique_ptr<TestModel>> load(const WeightOptions& weights) const {
    return TestModel::load(model_, {.device = {}, .weights = weights});
  }
  std::vector<float> logits(TestModel& model) const { return model.logits(ids_, 0, 64); }

  const std::filesystem::path folder_;
  const std::string model_ = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/llama-gqa-llama3rope";
  std::vector<int32_t> ids_ = std::vector<int32_t>(40);
};

TEST_F(WeightOptionsTest, PackedWeightsAreThoseOfTheCheckpoint) {
  auto plain = load({});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  const auto want = logits(**plain);
  for (const bool from_file : {false, true}) {
    auto model = load({.head = std::nullopt, .packed_file = packed()});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ((*model)->model().weights_from_packed_file(), from_file);
    EXPECT_EQ(logits(**model), want);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << "something was left beside the file";
}

TEST_F(WeightOptionsTest, AFileOfOtherWeightsIsReplaced) {
  ASSERT_TRUE(load({.head = std::nullopt, .packed_file = packed()}).ok());
  auto other = load({.head = DType::kQ8_0, .packed_file = packed()});
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE((*other)->model().weights_from_packed_file());
  EXPECT_TRUE((*load({.head = DType::kQ8_0, .packed_file = packed()}))->model().weights_from_packed_file());
}

TEST_F(WeightOptionsTest, ADamagedFileIsReplaced) {
  auto plain = load({.head = std::nullopt, .packed_file = packed()});
  ASSERT_TRUE(plain.ok());
  const auto want = logits(**plain);
  const auto size = std::filesystem::file_size(packed());
  const auto damage = [&](int kind) {
    if (kind == 0) return std::filesystem::resize_file(packed(), size - 1);
    if (kind == 1) return std::filesystem::resize_file(packed(), 3);
    if (kind == 2) return std::filesystem::resize_file(packed(), size + 1);
    std::fstream(packed(), std::ios::in | std::ios::out | std::ios::binary).seekp(40).put('#');
  };
  for (int kind = 0; kind < 4; ++kind) {
    damage(kind);
    auto model = load({.head = std::nullopt, .packed_file = packed()});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_FALSE((*model)->model().weights_from_packed_file()) << kind;
    EXPECT_EQ(logits(**model), want) << kind;
    EXPECT_EQ(std::filesystem::file_size(packed()), size);
  }
}

TEST_F(WeightOptionsTest, AFolderThatIsNotThereIsNamed) {
  const std::string path = folder_ / "missing" / "model.packed";
  const auto model = load({.head = std::nullopt, .packed_file = path});
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find(path), std::string::npos) << model.status().message();
  EXPECT_NE(model.status().message().find("--pack-cache"), std::string::npos);
}

TEST_F(WeightOptionsTest, ASmallerHeadMovesTheDistributionsALittle) {
  auto plain = load({});
  auto smaller = load({.head = DType::kQ8_0, .packed_file = ""});
  ASSERT_TRUE(plain.ok() && smaller.ok());
  const auto same = (*plain)->model().head_divergence(ids_);
  const auto divergence = (*smaller)->model().head_divergence(ids_);
  ASSERT_TRUE(same.ok() && divergence.ok());
  EXPECT_EQ(*same, 0);
  EXPECT_GT(*divergence, 0);
  EXPECT_LT(*divergence, 1e-3);
  EXPECT_NE(logits(**smaller), logits(**plain));
}

TEST_F(WeightOptionsTest, AHeadThatBlocksDoNotDivideIsRefused) {
  auto model = load({});
  ASSERT_TRUE(model.ok());
  const Status status = check_head((*model)->model().config(), (*model)->checkpoint(), DType::kQ6_K);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("256"), std::string::npos) << status.message();
  EXPECT_TRUE(check_head((*model)->model().config(), (*model)->checkpoint(), DType::kQ8_0).ok());
}

// FP8 has NaN codes. They are too many to be looked at as the checkpoint is opened, so the load does.
TEST_F(WeightOptionsTest, AnFp8WeightThatIsNoNumberIsRefused) {
  for (const char* name : {"ct-fp8-block", "ct-fp8-dynamic"}) {
    const auto original = std::filesystem::path(QUIRE_SOURCE_DIR) / "tests/golden/quantized" / name;
    const auto copy = folder_ / name;
    std::filesystem::copy(original, copy);
    TestModelOptions options;
    options.device.threads = 2;
    auto loads = [&] { return TestModel::load(copy, options); };
    ASSERT_TRUE(loads().ok());
    const auto checkpoint = Checkpoint::open(copy);
    ASSERT_TRUE(checkpoint.ok());
    const TensorRef& tensor = *(*checkpoint)->find("blk.1.ffn_down.weight");
    ASSERT_EQ(tensor.type().codes, CodeKind::kFp8);

    const auto file = copy / "model.safetensors";
    std::ifstream in(file, std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    const SafetensorsFile weights = std::move(*SafetensorsFile::open(file));
    const auto codes =
        std::ranges::find(weights.tensors, "model.layers.1.mlp.down_proj.weight", &SafetensorsEntry::name);
    ASSERT_NE(codes, weights.tensors.end());
    const auto at = static_cast<size_t>(codes->data - weights.file.bytes().data() + 3 * tensor.columns() + 5);
    for (const char nan : {'\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = nan;
      std::ofstream(file, std::ios::binary) << changed;
      const auto refused = loads();
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.status().message(), copy.string() +
                                                ": tensor blk.1.ffn_down.weight holds a NaN in row 3: the " +
                                                "quantization failed or the file is damaged");
    }
    std::string largest = whole;
    largest[at] = '\x7e';
    std::ofstream(file, std::ios::binary) << largest;
    EXPECT_TRUE(loads().ok());
  }
}

}  // namespace
}  // namespace quire
