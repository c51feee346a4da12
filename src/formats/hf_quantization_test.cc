#include "formats/hf_quantization.h"

#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

using Layout = QuantScheme::Layout;

const std::string kModule = "model.layers.3.self_attn.q_proj";

Result<std::optional<HfQuantization>> read(const std::string& settings) {
  const std::string config = "{\"quantization_config\": " + settings + "}";
  return HfQuantization::read({.directory = "dir", .config = &config});
}

std::optional<QuantScheme> scheme(const std::string& settings, const std::string& module = kModule) {
  const auto quantization = read(settings);
  EXPECT_TRUE(quantization.ok()) << quantization.status().message();
  if (!quantization.ok() || !*quantization) return std::nullopt;
  const auto found = (*quantization)->scheme_of(module);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return found.ok() ? *found : std::nullopt;
}

std::string error(const std::string& settings) {
  const auto quantization = read(settings);
  if (!quantization.ok()) return quantization.status().message();
  const auto found = (*quantization)->scheme_of(kModule);
  return found.ok() ? "" : found.status().message();
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(HfQuantization, IsAbsentWhereNothingIsSaid) {
  const std::string config = "{\"quantization_config\": null}";
  const auto read = HfQuantization::read({.directory = "dir", .config = &config});
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->has_value());
}

TEST(HfQuantization, ReadsGptq) {
  const auto old = scheme(R"({"quant_method": "gptq", "bits": 4, "group_size": 128})");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->layout, Layout::kGptq);
  EXPECT_EQ(old->bits, 4);
  EXPECT_EQ(old->group, 128);
  EXPECT_TRUE(old->symmetric);
  EXPECT_TRUE(old->zeros_less_one);
  const auto second = scheme(R"({"method": "gptq", "format": "gptq_v2", "bits": 3, "group_size": -1, "sym": false})");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->group, 0);
  EXPECT_FALSE(second->symmetric);
  EXPECT_FALSE(second->zeros_less_one);
}

TEST(HfQuantization, ReadsSettingsBesideTheConfiguration) {
  const std::string config = "{}";
  const std::string gptq = R"({"bits": 8, "group_size": 32})";
  const std::string awq = R"({"w_bit": 4, "q_group_size": 64, "zero_point": true, "version": "GEMM"})";
  const auto from = [&](const std::string& beside) {
    const auto read = HfQuantization::read({.directory = "dir", .config = &config, .quantize_config = &beside});
    EXPECT_TRUE(read.ok()) << read.status().message();
    return **(*read)->scheme_of(kModule);
  };
  EXPECT_EQ(from(gptq).bits, 8);
  EXPECT_EQ(from(awq).layout, Layout::kAwq);
  EXPECT_EQ(from(awq).group, 64);
}

TEST(HfQuantization, ReadsAutoRoundsPackings) {
  const std::string settings = R"({"quant_method": "auto-round", "packing_format": "auto_round:auto_gptq", "bits": 4,
      "group_size": 128, "sym": true, "data_type": "int", "extra_config": {
        "model.layers.3.self_attn.q_proj": {"bits": 8, "group_size": 32, "sym": false}, "lm_head": {"bits": 16}}})";
  const auto usual = scheme(settings, "model.layers.2.self_attn.q_proj");
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->layout, Layout::kGptq);
  EXPECT_TRUE(usual->zeros_less_one);
  EXPECT_EQ(usual->bits, 4);
  const auto own = scheme(settings);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->bits, 8);
  EXPECT_EQ(own->group, 32);
  EXPECT_FALSE(own->symmetric);
  EXPECT_FALSE(scheme(settings, "lm_head"));
  EXPECT_MENTIONS(error(R"({"quant_method": "auto-round", "packing_format": "auto_round:gguf", "bits": 4})"),
                  "auto_round:auto_gptq, auto_round:auto_awq");
}

TEST(HfQuantization, RemarksOnSettingsThatContradictEachOther) {
  const std::string config =
      R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true}})";
  const std::string beside = R"({"bits": 4, "group_size": 64, "desc_act": true})";
  const auto read = HfQuantization::read({.directory = "dir", .config = &config, .quantize_config = &beside});
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_TRUE((*read)->desc_act());
  ASSERT_EQ((*read)->remarks().size(), 1u);
  EXPECT_MENTIONS((*read)->remarks().front(), "\"group_size\" is 128, which is used, but 64 in");
}

TEST(HfQuantization, FollowsGptqsPatterns) {
  const std::string base = R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": )";
  const std::string one = base + R"({"-:.*down": {}, "+:.*q_proj": {"bits": 8, "group_size": 32, "sym": false}}})";
  EXPECT_EQ(scheme(one)->bits, 8);
  EXPECT_EQ(scheme(one)->group, 32);
  EXPECT_FALSE(scheme(one)->symmetric);
  EXPECT_EQ(scheme(one, "model.layers.3.mlp.up_proj")->bits, 4);
  EXPECT_FALSE(scheme(one, "model.layers.3.mlp.down_proj"));
  EXPECT_MENTIONS(error(base + R"({".*q_proj": {}, ".*self": {"bits": 8}}})"), "two patterns");
  EXPECT_MENTIONS(error(base + R"x({".*(?=q)": {}}})x"), "uses what quire does not know");
  EXPECT_MENTIONS(error(base + R"({"x": 1}})"), "is not an object");
}

TEST(HfQuantization, ReadsAwq) {
  const std::string settings =
      R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "modules_to_not_convert": ["mlp"]})";
  EXPECT_EQ(scheme(settings)->layout, Layout::kAwq);
  EXPECT_FALSE(scheme(settings)->symmetric);
  EXPECT_FALSE(scheme(settings, "model.layers.0.mlp.up_proj"));
}

std::string compressed(const std::string& format, const std::string& weights, const std::string& inputs = "null",
                       const std::string& rest = "") {
  return R"({"quant_method": "compressed-tensors", "format": ")" + format +
         R"(", "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" + weights +
         R"(, "input_activations": )" + inputs + "}}" + rest + "}";
}

TEST(HfQuantization, ReadsCompressedTensors) {
  const auto packed = scheme(
      compressed("pack-quantized",
                 R"({"num_bits": 4, "type": "int", "symmetric": false, "strategy": "group", "group_size": 32})"));
  EXPECT_EQ(packed->layout, Layout::kPacked);
  EXPECT_EQ(packed->group, 32);
  EXPECT_FALSE(packed->symmetric);
  const auto int8 = scheme(compressed("int-quantized", R"({"num_bits": 8, "strategy": "channel"})",
                                      R"({"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true})"));
  EXPECT_EQ(int8->layout, Layout::kInt8);
  EXPECT_TRUE(int8->token_scale);
  const auto fp8 = scheme(compressed(
      "float-quantized", R"({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 64]})"));
  EXPECT_EQ(fp8->layout, Layout::kFp8);
  EXPECT_EQ(fp8->block_rows, 128);
  EXPECT_EQ(fp8->group, 64);
}

TEST(HfQuantization, ChoosesAGroupByModule) {
  const std::string settings = R"({"quant_method": "compressed-tensors", "format": "mixed-precision", "ignore":
    ["lm_head", "re:.*layers\\.0\\."], "config_groups": {
    "a": {"targets": ["Linear"], "format": "pack-quantized",
          "weights": {"num_bits": 4, "strategy": "group", "group_size": 128}},
    "b": {"targets": ["re:.*down_proj$"], "format": "float-quantized",
          "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}}})";
  EXPECT_EQ(scheme(settings)->layout, Layout::kPacked);
  EXPECT_EQ(scheme(settings, "model.layers.3.mlp.down_proj")->layout, Layout::kFp8);
  EXPECT_FALSE(scheme(settings, "model.layers.0.mlp.down_proj"));
  EXPECT_FALSE(scheme(settings, "lm_head"));
}

TEST(HfQuantization, ReadsFp8) {
  const std::string settings =
      R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "ignored_layers": ["lm_head"]})";
  EXPECT_EQ(scheme(settings)->block_rows, 128);
  EXPECT_FALSE(scheme(settings, "lm_head"));
  EXPECT_EQ(scheme(R"({"quant_method": "fp8", "activation_scheme": "static"})")->group, 0);
}

TEST(HfQuantization, NamesWhatItCannotRead) {
  for (const char* method : {"marlin", "bitblas", "bitsandbytes", "hqq", "gguf", ""}) {
    EXPECT_MENTIONS(error(R"({"quant_method": ")" + std::string(method) + "\"}"), "quire cannot read");
  }
  for (const char* format : {"marlin", "bitblas", "gptq_p"}) {
    const std::string said =
        error(R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": ")" + std::string(format) + "\"}");
    EXPECT_MENTIONS(said, format);
    EXPECT_MENTIONS(said, "dir/config.json");
  }
  for (const char* version : {"gemv", "gemv_fast", "marlin", "exllama"}) {
    EXPECT_MENTIONS(error(R"({"quant_method": "awq", "bits": 4, "version": ")" + std::string(version) + "\"}"),
                    version);
  }
  EXPECT_MENTIONS(error(R"({"quant_method": "gptq"})"), "\"bits\" is missing");
  EXPECT_MENTIONS(error(R"({"quant_method": "gptq", "bits": 5})"), "2, 3, 4, 8");
  EXPECT_MENTIONS(error(R"({"quant_method": "gptq", "bits": 4, "group_size": 48})"), "multiples of 32");
  EXPECT_MENTIONS(error(R"({"quant_method": "gptq", "bits": 4, "group_size": 0})"), "\"group_size\" is 0");
  EXPECT_MENTIONS(error(R"({"quant_method": "gptq", "bits": 4, "pack_dtype": "int64"})"), "int64");
  EXPECT_MENTIONS(error(R"({"quant_method": "gptq", "bits": 4, "is_marlin_format": true})"), "is_marlin_format");
  EXPECT_MENTIONS(error(R"({"quant_method": "awq", "bits": 8})"), "\"bits\" is \"8\"");
  EXPECT_MENTIONS(error(R"({"quant_method": "fp8", "fmt": "e5m2"})"), "e5m2");
  EXPECT_MENTIONS(error(R"({"quant_method": "fp8", "weight_block_size": [128]})"), "two positive sizes");
  EXPECT_MENTIONS(error(R"({"quant_method": "fp8", "weight_block_size": [128, 16]})"), "multiples of 32");
  for (const char* format : {"marlin-24", "nvfp4-pack-quantized", "dense", ""}) {
    EXPECT_MENTIONS(error(compressed(format, R"({"num_bits": 4, "strategy": "channel"})")), "\"format\" is");
  }
  EXPECT_MENTIONS(error(compressed("pack-quantized", R"({"num_bits": 4, "strategy": "tensor_group"})")),
                  "tensor_group");
  EXPECT_MENTIONS(error(compressed("pack-quantized", R"({"num_bits": 4, "strategy": "group"})")), "group_size");
  EXPECT_MENTIONS(error(compressed("pack-quantized", "null")), "\"weights\" is missing");
  EXPECT_MENTIONS(error(compressed("pack-quantized", R"({"num_bits": 4, "strategy": "channel"})", "null",
                                   R"(, "sparsity_config": {"format": "sparse-24-bitmask"})")),
                  "sparse-24-bitmask");
  EXPECT_MENTIONS(error(R"({"quant_method": "compressed-tensors"})"), "names no group");
}

}  // namespace
}  // namespace quire
