// The weights of quantized tiny checkpoints against the oracle's numpy dequantization, bit for bit
// (compare_quantized.py). Skipped where the oracle, Python or numpy is missing.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/checkpoint.h"

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

TEST(QuantizedWeights, EqualTheOraclesToTheBit) {
  const std::string oracle = kRoot + "/../shared/oracle/quantized_reference.py";
  if (!std::filesystem::exists(oracle)) GTEST_SKIP() << "no " << oracle;
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) GTEST_SKIP() << "python3 lacks numpy";
  const std::string decoded = testing::TempDir() + "quire-decoded-weights";
  int checkpoints = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/tests/golden/quantized")) {
    if (!entry.is_directory() || entry.path().filename() == "base") continue;
    const auto checkpoint = Checkpoint::open(entry.path().string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    write_decoded(**checkpoint, decoded);
    const std::string command = "python3 '" + kRoot + "/tests/model/compare_quantized.py' '" + oracle + "' '" +
                                entry.path().string() + "' '" + decoded + "' >/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << entry.path();
    ++checkpoints;
  }
  std::filesystem::remove(decoded);
  EXPECT_EQ(checkpoints, 16);
}

}  // namespace
}  // namespace quire
