// Requests that no file can hold are refused with what is at fault and what can be done; the others become what they say.

#include "quantize/target.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "quantize/test_model.h"

namespace quire {
namespace {

using namespace testing_inputs;
using Format = CheckpointTarget::Format;

struct Refusal {
  const char* what;
  std::function<void(QuantizeRequest&)> ask;
  const char* out;
  std::vector<std::string> says;
};

class Targets : public testing::Test {
 protected:
  // Matrices of 64 and 96 columns: groups of 32 fit all, of 64 not the second.
  TinyModel model_{"tiny/qwen2"};
};

TEST_F(Targets, RefusalsNameWhatIsAtFault) {
  const Refusal refusals[] = {
      {"group does not divide",
       [](auto& r) { r.group = 64; },
       "out",
       {"--group 64", "96 columns", "blk.0.ffn_down.weight", "leave it out"}},
      {"group of a GGUF", [](auto& r) { r.group = 32; }, "out.gguf", {"--group", "GGUF", "leave it out"}},
      {"row as a group of a GGUF", [](auto& r) { r.group = 0; }, "out.gguf", {"--group", "GGUF"}},
      {"AWQ with 8 bits",
       [](auto& r) {
         r.scheme = QuantizeScheme::kAwq;
         r.bits = 8;
       },
       "out",
       {"AWQ", "4 bits", "compressed-tensors"}},
      {"AWQ without groups",
       [](auto& r) {
         r.scheme = QuantizeScheme::kAwq;
         r.group = 0;
       },
       "out",
       {"AWQ", "--group -1"}},
      {"AWQ file with groups out of order",
       [](auto& r) {
         r.format = Format::kAwq;
         r.gptq.act_order = true;
       },
       "out",
       {"AWQ", "--static-groups"}},
      {"AWQ with act-order",
       [](auto& r) {
         r.scheme = QuantizeScheme::kAwq;
         r.gptq.act_order = true;
       },
       "out",
       {"--act-order", "--scheme gptq"}},
      {"RTN with act-order",
       [](auto& r) {
         r.scheme = QuantizeScheme::kRtn;
         r.gptq.act_order = true;
       },
       "out",
       {"--act-order", "--scheme gptq"}},
      {"RTN with static groups",
       [](auto& r) {
         r.scheme = QuantizeScheme::kRtn;
         r.gptq.static_groups = true;
       },
       "out",
       {"--static-groups", "--scheme gptq"}},
      {"GGUF with groups out of order",
       [](auto& r) { r.gptq.act_order = true; },
       "out.gguf",
       {"GGUF", "--static-groups"}},
      {"GGUF under another name", [](auto& r) { r.format = Format::kGguf; }, "model.bin", {"model.bin", ".gguf"}},
      {"directory called .gguf", [](auto& r) { r.format = Format::kGptq; }, "model.gguf", {"model.gguf", "directory"}},
      {"5 bits", [](auto& r) { r.bits = 5; }, "out", {"--bits 5", "4, 8 and 16"}},
      {"type that is not written", [](auto& r) { r.type = DType::kQ5_0; }, "out.gguf", {"Q5_0", "Q4_0, Q4_1, Q8_0"}},
      {"type of a directory", [](auto& r) { r.type = DType::kQ4_0; }, "out", {"--type", "GGUF", "--format gguf"}},
      {"importance with GPTQ", [](auto& r) { r.importance = true; }, "out.gguf", {"--importance", "--scheme rtn"}},
      {"importance in a directory",
       [](auto& r) {
         r.scheme = QuantizeScheme::kRtn;
         r.importance = true;
       },
       "out",
       {"--importance", "--scheme rtn", "GGUF"}},
      {"plain values of 4 bits", [](auto& r) { r.format = Format::kSafetensors; }, "out", {"--bits 16"}},
      {"codes of 16 bits",
       [](auto& r) {
         r.format = Format::kGptq;
         r.bits = 16;
       },
       "out",
       {"--bits 16", "safetensors"}},
      {"8 bits and a type of 4",
       [](auto& r) {
         r.bits = 8;
         r.type = DType::kQ4_0;
       },
       "out.gguf",
       {"--bits 8", "Q4_0"}},
      {"zero points in a type without",
       [](auto& r) {
         r.symmetric = false;
         r.type = DType::kQ6_K;
       },
       "out.gguf",
       {"--asym", "Q6_K", "q4_1"}},
      {"zero points in 8-bit blocks",
       [](auto& r) {
         r.symmetric = false;
         r.bits = 8;
       },
       "out.gguf",
       {"--asym", "Q8_0", "q4_1"}},
      {"groups of plain values",
       [](auto& r) {
         r.bits = 16;
         r.group = 32;
       },
       "out",
       {"--bits 16", "--group"}},
  };
  for (const Refusal& refusal : refusals) {
    QuantizeRequest request;
    refusal.ask(request);
    const auto target = quantize_target(*model_.checkpoint, request, refusal.out);
    ASSERT_FALSE(target.ok()) << refusal.what;
    for (const std::string& part : refusal.says)
      EXPECT_NE(target.status().message().find(part), std::string::npos)
          << refusal.what << ": " << part << " is not in: " << target.status().message();
  }
}

TEST_F(Targets, TheNameAndTheSchemeChooseTheFormat) {
  const auto format_of = [&](QuantizeScheme scheme, int bits, const std::string& out) {
    QuantizeRequest request;
    request.scheme = scheme;
    request.bits = bits;
    const auto target = quantize_target(*model_.checkpoint, request, out);
    EXPECT_TRUE(target.ok()) << target.status().message();
    return target->file.format;
  };
  EXPECT_EQ(format_of(QuantizeScheme::kGptq, 4, "out"), Format::kGptq);
  EXPECT_EQ(format_of(QuantizeScheme::kAwq, 4, "out"), Format::kAwq);
  EXPECT_EQ(format_of(QuantizeScheme::kRtn, 4, "out"), Format::kCompressedTensors);
  EXPECT_EQ(format_of(QuantizeScheme::kRtn, 16, "out"), Format::kSafetensors);
  for (const auto scheme : {QuantizeScheme::kRtn, QuantizeScheme::kGptq, QuantizeScheme::kAwq}) {
    for (const int bits : {4, 8, 16}) EXPECT_EQ(format_of(scheme, bits, "out.gguf"), Format::kGguf);
  }
}

TEST_F(Targets, TheLargestGroupThatFitsIsTheDefault) {
  for (const auto& [name, group] : {std::pair<std::string, int64_t>{"tiny/qwen2", 32}, {"tiny/gemma3", 64}}) {
    const TinyModel model(name);
    const auto target = quantize_target(*model.checkpoint, {}, "out");
    ASSERT_TRUE(target.ok()) << target.status().message();
    EXPECT_EQ(target->file.group, group) << name;
    EXPECT_EQ(target->options.grid(*model.checkpoint->find("blk.0.ffn_down.weight")).group, group);
    EXPECT_NE(target->description.find("groups of " + std::to_string(group)), std::string::npos) << target->description;
  }
}

TEST_F(Targets, BlocksOf256GiveWayWhereTheyDoNotFit) {
  QuantizeRequest request;
  for (const auto& [type, fallback] :
       {std::pair{DType::kQ4_K, DType::kQ4_1}, {DType::kQ6_K, DType::kQ8_0}, {DType::kQ4_0, DType::kQ4_0}}) {
    request.type = type;
    const auto target = quantize_target(*model_.checkpoint, request, "out.gguf");
    ASSERT_TRUE(target.ok()) << target.status().message();
    const TensorRef& linear = *model_.checkpoint->find("blk.0.attn_q.weight");
    EXPECT_EQ(target->file.dtype(linear), fallback);
    EXPECT_EQ(target->options.grid(linear).blocks, block_grid(fallback));
    EXPECT_EQ(target->file.dtype(*model_.checkpoint->find("blk.0.attn_norm.weight")), DType::kF32);
  }
}

// Readers of that format take columns in their own order only.
TEST_F(Targets, CompressedTensorsTakesActOrderThatLeavesNoTrace) {
  QuantizeRequest request;
  request.format = Format::kCompressedTensors;
  request.gptq.act_order = true;
  for (const int64_t group : {0, 32}) {  // 0: the row
    for (const bool static_groups : {false, true}) {
      request.group = group;
      request.gptq.static_groups = static_groups;
      const auto target = quantize_target(*model_.checkpoint, request, "out");
      EXPECT_EQ(target.ok(), group == 0 || static_groups) << group;
      if (target.ok()) continue;
      EXPECT_NE(target.status().message().find("--static-groups, or use --format gptq"), std::string::npos);
    }
  }
}

// Runs are told apart by it when one goes on with the work of another.
TEST_F(Targets, TheDescriptionHasAllThatChangesTheResult) {
  std::set<std::string> seen;
  for (const bool act_order : {false, true}) {
    for (const bool static_groups : {false, true}) {
      for (const char* out : {"out", "out.gguf"}) {
        if (act_order && !static_groups && std::string_view(out).ends_with(".gguf")) continue;  // refused
        QuantizeRequest request;
        request.gptq.act_order = act_order;
        request.gptq.static_groups = static_groups;
        const auto target = quantize_target(*model_.checkpoint, request, out);
        ASSERT_TRUE(target.ok()) << target.status().message();
        EXPECT_TRUE(seen.insert(target->description).second) << target->description;
      }
    }
  }
}

}  // namespace
}  // namespace quire
