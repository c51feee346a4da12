// Logits of tiny random checkpoints against transformers' (tests/golden/README.md), as Hugging Face directories and as
// their GGUF twins, on each instruction set, with f32 activations; with f32 KV closely, with the others loosely.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/safetensors_file.h"
#include "support/test_model.h"

namespace quire {
namespace {

constexpr const char* kNames[] = {"llama-mha-spm",
                                  "llama-gqa-llama3rope",
                                  "llama-mqa-sharded",
                                  "llama-linear-rope-bias",
                                  "llama-yarn",
                                  "mistral-window32",
                                  "qwen2",
                                  "qwen3",
                                  "gemma3"};

float tolerance(KvType kv) {
  switch (kv) {
    case KvType::kBF16:
      return 3e-1f;
    case KvType::kF16:
      return 4e-2f;
    case KvType::kI8:
      return 6e-1f;
    case KvType::kF32:
      return 2e-3f;
  }
  return 0;
}

struct Case {
  std::string name;
  bool twin;
  CpuDeviceOptions::Isa isa;
  KvType kv;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name << (c.twin ? " GGUF " : " directory ") << isa_name(c.isa) << " " << kv_type_name(c.kv) << " KV";
}

const SafetensorsEntry* find(const SafetensorsFile& file, const std::string& name) {
  for (const SafetensorsEntry& entry : file.tensors) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

class TinyLogits : public testing::TestWithParam<Case> {};

TEST_P(TinyLogits, MatchTransformers) {
  const Case& c = GetParam();
  const std::string golden = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/";
  const std::string path =
      c.twin ? golden + "tiny-gguf/" + c.name + (c.name == "llama-mqa-sharded" ? "-00001-of-00003.gguf" : ".gguf")
             : golden + "tiny/" + c.name;
  TestModelOptions options;
  options.device = {.isa = c.isa, .threads = 2, .f32 = true, .kv = c.kv};
  auto model = TestModel::load(path, options);
  if (!model.ok() && lacks_isa(model.status())) GTEST_SKIP() << model.status().message();
  ASSERT_TRUE(model.ok()) << model.status().message();

  auto expected = SafetensorsFile::open(golden + "tiny/" + c.name + "/expected.safetensors");
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  for (const char* length : {"5", "40", "200"}) {
    const SafetensorsEntry* ids_entry = find(*expected, std::string("ids_") + length);
    const SafetensorsEntry* logits_entry = find(*expected, std::string("logits_") + length);
    ASSERT_NE(ids_entry, nullptr);
    ASSERT_NE(logits_entry, nullptr);
    std::vector<int64_t> wide(static_cast<size_t>(ids_entry->bytes) / 8);
    std::memcpy(wide.data(), ids_entry->data, static_cast<size_t>(ids_entry->bytes));
    const std::vector<int32_t> ids(wide.begin(), wide.end());
    std::vector<float> want(static_cast<size_t>(logits_entry->bytes) / 4);
    std::memcpy(want.data(), logits_entry->data, static_cast<size_t>(logits_entry->bytes));
    const std::vector<float> got = (*model)->logits(ids, 0, 64);
    ASSERT_EQ(got.size(), want.size());
    float worst = 0;
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::isfinite(got[i]) ? std::abs(got[i] - want[i]) : 1e9f);
    EXPECT_LE(worst, tolerance(c.kv)) << length << " ids";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name : kNames) {
    for (const bool twin : {false, true}) {
      if (twin && std::string(name) == "mistral-window32") continue;  // GGUF's llama has no key for its window
      for (const auto isa : kEveryIsa) {
        all.push_back({name, twin, isa, KvType::kF32});
        if (twin) continue;
        for (const KvType kv : {KvType::kBF16, KvType::kF16, KvType::kI8}) all.push_back({name, twin, isa, kv});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Golden, TinyLogits, testing::ValuesIn(cases()));

}  // namespace
}  // namespace quire
