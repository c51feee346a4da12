// The weights of quantized tiny checkpoints against a numpy dequantization of the formats' definitions, bit for bit
// (compare_quantized.py). Skipped where no Python has the packages.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "support/test_python.h"

namespace quire {
namespace {

const std::string kRoot = QUIRE_SOURCE_DIR;

// "blk.3.attn_q.weight" as Hugging Face names the module.
std::string module_of(const std::string& name) {
  constexpr std::pair<const char*, const char*> kModules[] = {
      {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_gate", "mlp.gate_proj"},  {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  const size_t layer_end = name.find('.', 4);
  for (const auto& [canonical, module] : kModules) {
    if (name.substr(layer_end + 1) == std::string(canonical) + ".weight") {
      return "model.layers." + name.substr(4, layer_end - 4) + "." + module;
    }
  }
  return name;
}

void write_decoded(const Checkpoint& checkpoint, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const TensorRef& tensor : checkpoint.tensors()) {
    if (tensor.quantized == nullptr) continue;
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.columns()));
    tensor.decode_f32(0, tensor.rows(), values.data());
    file << module_of(tensor.name) << ' ' << tensor.rows() << ' ' << tensor.columns() << '\n';
    file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(4 * values.size()));
  }
}

TEST(QuantizedWeights, EqualThoseOfNumpyToTheBit) {
  if (const std::string reason = no_test_python(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string decoded = testing::TempDir() + "quire-decoded-weights";
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/tests/golden/quantized")) {
    if (!entry.is_directory() || entry.path().filename() == "base") continue;
    const auto checkpoint = Checkpoint::open(entry.path().string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    write_decoded(**checkpoint, decoded);
    EXPECT_EQ(run_test_python("compare_quantized.py", {entry.path().string(), decoded}), 0) << entry.path();
    ++checkpoints;
  }
  std::filesystem::remove(decoded);
  EXPECT_EQ(checkpoints, 16);
}

}  // namespace
}  // namespace quire
