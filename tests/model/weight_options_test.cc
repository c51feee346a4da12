// How weights are loaded: packed ones kept in a file, and a head repacked in a smaller type.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>

#include "formats/safetensors_file.h"
#include "model/packed_file.h"
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
  static std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
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

// Whatever bit of the file is another one: it is found, said with the file's name, and mended.
TEST_F(WeightOptionsTest, AFlippedBitIsFoundAndMended) {
  const WeightOptions cached{.head = std::nullopt, .packed_file = packed()};
  auto plain = load(cached);
  ASSERT_TRUE(plain.ok());
  const auto want = logits(**plain);
  const std::string whole = read(packed());
  const char* seed_text = std::getenv("QUIRE_FLIP_SEED");
  const uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu (QUIRE_FLIP_SEED repeats it)\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  // Also of the first and the last bytes, and of the first and last of the weights.
  std::vector<uint64_t> bits = {0, whole.size() * 8 - 1, 4096 * 8, (whole.size() - 8) * 8 - 1};
  while (bits.size() < 64) bits.push_back(random() % (whole.size() * 8));
  for (const uint64_t bit : bits) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    std::ofstream(packed(), std::ios::binary) << changed;
    auto model = load(cached);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_FALSE((*model)->model().weights_from_packed_file()) << "bit " << bit;
    EXPECT_EQ(logits(**model), want) << "bit " << bit;
    ASSERT_EQ((*model)->model().weight_notes().size(), 2u) << "bit " << bit;
    EXPECT_EQ((*model)->model().weight_notes()[0],
              packed() + ": is damaged (its checksum is wrong); the weights were packed anew")
        << "bit " << bit;
    ASSERT_EQ(read(packed()), whole) << "bit " << bit;
  }
  EXPECT_TRUE((*load(cached))->model().weights_from_packed_file());
}

// The sums tell where a block lies, too.
TEST_F(WeightOptionsTest, BlocksThatChangedPlacesAreFound) {
  constexpr size_t kBlock = size_t{256} << 10;
  const auto checkpoint = Checkpoint::open(model_);
  CpuDeviceOptions options;
  options.threads = 2;
  const auto device = make_cpu_device(options);
  auto memory = Buffer::allocate(3 * kBlock + 100, "a test");
  ASSERT_TRUE(checkpoint.ok() && device.ok() && memory.ok());
  std::mt19937_64 random(1);
  std::generate_n(memory->data(), memory->size(), [&] { return static_cast<std::byte>(random()); });
  const PackedFile file(packed(), **checkpoint, std::nullopt, (*device)->sizes());
  ASSERT_TRUE(file.write(**device, *memory).ok());

  auto again = Buffer::allocate(memory->size(), "a test");
  EXPECT_TRUE(file.read(**device, *again).filled);
  EXPECT_EQ(std::memcmp(memory->data(), again->data(), static_cast<size_t>(memory->size())), 0);
  std::string bytes = read(packed());
  const size_t header = bytes.size() - static_cast<size_t>(memory->size()) - 5 * sizeof(uint64_t);
  std::rotate(bytes.begin() + static_cast<int64_t>(header), bytes.begin() + static_cast<int64_t>(header + kBlock),
              bytes.begin() + static_cast<int64_t>(header + 2 * kBlock));
  std::ofstream(packed(), std::ios::binary) << bytes;
  EXPECT_FALSE(file.read(**device, *again).filled);
}

TEST_F(WeightOptionsTest, WhatKilledProgramsLeftIsSwept) {
  const pid_t dead = [] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    return child;
  }();
  const auto part = [&](const std::string& name, pid_t pid) {
    std::string path = folder_ / (name + ".part" + std::to_string(pid));
    std::ofstream(path) << "half a file";
    return path;
  };
  // A number says little: this one is taken again, by a process that writes nothing.
  const std::vector<std::string> swept = {part("model.packed", dead), part("other.packed", dead),
                                          part("other.packed", ::getpid()), part("model.packed", 1)};
  const std::vector<std::string> kept = {part("model", dead), part("model.packed", -1),
                                         part("model.packed.part1x", dead)};
  const std::string living = part("third.packed", dead);
  const int writer = ::open(living.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX | LOCK_NB), 0);
  ASSERT_TRUE(load({.head = std::nullopt, .packed_file = packed()}).ok());
  for (const std::string& path : swept) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  for (const std::string& path : kept) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_TRUE(std::filesystem::exists(living)) << "another program writes it";
  ::close(writer);
  ASSERT_TRUE(load({.head = std::nullopt, .packed_file = packed()}).ok());
  EXPECT_FALSE(std::filesystem::exists(living));
}

TEST_F(WeightOptionsTest, AFolderThatIsNotThereIsMade) {
  const WeightOptions cached{.head = std::nullopt, .packed_file = folder_ / "some" / "where" / "model.packed"};
  ASSERT_TRUE(load(cached).ok());
  EXPECT_TRUE((*load(cached))->model().weights_from_packed_file());
}

// A cache that cannot be used costs time, and nothing else.
TEST_F(WeightOptionsTest, WithoutAUsableCacheItIsANote) {
  const auto want = logits(**load({}));
  std::ofstream(folder_ / "file") << "in the way";
  std::filesystem::create_directories(folder_ / "folder.packed");
  ASSERT_EQ(::mkfifo((folder_ / "pipe.packed").c_str(), 0600), 0);
  for (const std::string path : {folder_ / "file" / "model.packed", folder_ / "folder.packed", folder_ / "pipe.packed",
                                 std::filesystem::path("/proc/nowhere/model.packed")}) {
    const auto model = load({.head = std::nullopt, .packed_file = path});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(logits(**model), want);
    const std::vector<std::string>& notes = (*model)->model().weight_notes();
    ASSERT_FALSE(notes.empty()) << path;
    EXPECT_NE(notes.back().find("going on without a pack cache (see --pack-cache)"), std::string::npos) << notes.back();
    const std::string place = std::filesystem::path(path).parent_path();
    EXPECT_NE(notes.back().find(place), std::string::npos) << notes.back();
  }
}

TEST_F(WeightOptionsTest, AFullDiskIsANote) {
  const auto want = logits(**load({}));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 10000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto model = load({.head = std::nullopt, .packed_file = packed()});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(logits(**model), want);
  ASSERT_EQ((*model)->model().weight_notes().size(), 1u);
  EXPECT_NE((*model)->model().weight_notes()[0].find(packed()), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "half a file was left";
}

// Files of a checkpoint that another program truncates or overwrites: an error at the next read, and never other numbers.
TEST_F(WeightOptionsTest, ACheckpointThatIsTruncatedIsNamed) {
  const auto copy = folder_ / "model";
  const auto weights = copy / "model.safetensors";
  for (const bool before_load : {true, false}) {
    for (const size_t left : {size_t{0}, size_t{1}, size_t{5000},
                              std::filesystem::file_size(std::filesystem::path(model_) / "model.safetensors") - 1}) {
      std::filesystem::remove_all(copy);
      std::filesystem::copy(model_, copy);
      auto checkpoint = Checkpoint::open(copy);
      ASSERT_TRUE(checkpoint.ok());
      CpuDeviceOptions options;
      options.threads = 2;
      auto device = make_cpu_device(options);
      ASSERT_TRUE(device.ok());
      const auto config = configure_model((*checkpoint)->hparams());
      ModelLimits limits;
      limits.weights.packed_file = packed();
      limits.workspace = {.max_rows = 64, .max_context = 64};
      limits.kv_pages.assign(config->kv_groups.size(), 4);
      if (before_load) std::filesystem::resize_file(weights, left);
      auto model = Model::load(**checkpoint, *config, std::move(*device), limits, nullptr);
      const std::string says = weights.string() + ": was truncated while it was in use";
      if (before_load) {
        ASSERT_FALSE(model.ok()) << left;
        EXPECT_EQ(model.status().message().find(says), 0u) << model.status().message();
        EXPECT_FALSE(std::filesystem::exists(packed())) << "weights of zeros were kept";
        continue;
      }
      ASSERT_TRUE(model.ok()) << model.status().message();
      std::vector<int32_t> pages(4);
      std::iota(pages.begin(), pages.end(), 0);
      StepInput step;
      step.sequences.push_back(
          {.rows = 40, .page_tables = std::vector<const int32_t*>(config->kv_groups.size(), pages.data())});
      step.tokens = ids_;
      EXPECT_TRUE((*model)->forward(step).ok());
      std::filesystem::resize_file(weights, left);
      for (int again = 0; again < 2; ++again) {
        const Status failed = (*model)->forward(step);
        EXPECT_EQ(failed.code(), StatusCode::kIo);
        EXPECT_EQ(failed.message().find(says), 0u) << failed.message();
      }
      std::filesystem::remove(packed());
    }
  }
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
