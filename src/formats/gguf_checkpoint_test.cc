#include "formats/gguf_checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "formats/test_files.h"

namespace quire {
namespace {

using namespace testing_files;

Result<std::unique_ptr<Checkpoint>> open_gguf(const Gguf& gguf) {
  const TempDir dir;
  return Checkpoint::open(dir.write("model.gguf", gguf.bytes()));
}

Hparams hparams_of(const Gguf& gguf) {
  const auto opened = open_gguf(gguf);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.ok() ? (*opened)->hparams() : Hparams();
}

std::string error_of(const Gguf& gguf) {
  const auto opened = open_gguf(gguf);
  return opened.ok() ? "" : opened.status().message();
}

Gguf small_gemma3_gguf(uint32_t layers) {
  const Gguf llama = small_llama_gguf();
  Gguf gguf;
  for (const auto& [key, value] : llama.entries) {
    gguf.set(key.starts_with("llama.") ? "gemma3." + key.substr(6) : key, value);
  }
  gguf.set("general.architecture", string_value("gemma3"));
  gguf.set("gemma3.block_count", u32_value(layers));
  gguf.set("gemma3.attention.sliding_window", u32_value(16));
  gguf.set("gemma3.rope.freq_base", f32_value(1e6f));
  gguf.add_f32("token_embd.weight", {8, 8});
  gguf.add_f32("output_norm.weight", {8});
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    for (const GgufTensor& tensor : llama.tensors) {
      if (tensor.name.starts_with("blk.0.")) gguf.add_f32(prefix + tensor.name.substr(6), tensor.dims);
    }
    for (const char* norm : {"attn_q_norm", "attn_k_norm"}) gguf.add_f32(prefix + norm + ".weight", {4});
    for (const char* norm : {"post_attention_norm", "post_ffw_norm"}) gguf.add_f32(prefix + norm + ".weight", {8});
  }
  return gguf;
}

TEST(GgufHparams, ReadsSizesAndDefaults) {
  const Hparams h = hparams_of(small_llama_gguf());
  EXPECT_EQ(h.architecture, "llama");
  EXPECT_EQ(h.name, "small");
  EXPECT_EQ(h.vocab_size, 8);
  EXPECT_EQ(h.context_length, 64);
  EXPECT_EQ(h.head_dim, 4);
  EXPECT_EQ(h.rope_dim, 4);
  EXPECT_EQ(h.rope.theta, 10000.0);
  EXPECT_EQ(h.rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(h.activation, "silu");
  EXPECT_FALSE(h.tied_embeddings);
  EXPECT_EQ(h.sliding_window, 0);
  EXPECT_EQ(h.layer_slides, std::vector<bool>{false});
  EXPECT_FALSE(h.attention_scale.has_value());
  EXPECT_EQ(h.eos_token_ids, std::vector<int32_t>{1});
}

TEST(GgufHparams, TiesEmbeddingsWhereThereIsNoOutput) {
  Gguf gguf = small_llama_gguf();
  std::erase_if(gguf.tensors, [](const GgufTensor& t) { return t.name == "output.weight"; });
  EXPECT_TRUE(hparams_of(gguf).tied_embeddings);
}

TEST(GgufHparams, AcceptsIntegersOfAnyWidthAndOnePerLayer) {
  Gguf gguf = small_llama_gguf();
  gguf.set("llama.context_length", Bytes().add<uint32_t>(kI64).add<int64_t>(64).str());
  gguf.set("llama.block_count", u16_value(1));
  gguf.set("llama.attention.head_count", ints_value({2}));
  gguf.set("llama.feed_forward_length", ints_value({16}));
  EXPECT_EQ(hparams_of(gguf).heads, 2);
  gguf.set("llama.attention.head_count", ints_value({2, 2}));
  EXPECT_NE(error_of(gguf).find("2 entries for 1 layers"), std::string::npos);
}

TEST(GgufHparams, TakesTheVocabularySizeFromTheEmbeddingAtLast) {
  Gguf gguf = small_llama_gguf();
  for (const char* key : {"tokens", "token_type", "scores"}) gguf.erase(std::string("tokenizer.ggml.") + key);
  EXPECT_EQ(hparams_of(gguf).vocab_size, 8);
  gguf.set("llama.vocab_size", u32_value(9));
  EXPECT_NE(error_of(gguf).find("shape [8, 8], not the [9, 8]"), std::string::npos);
}

TEST(GgufHparams, ReadsRopeScaling) {
  Gguf gguf = small_llama_gguf();
  gguf.set("llama.rope.scaling.factor", f32_value(4));
  EXPECT_EQ(hparams_of(gguf).rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(hparams_of(gguf).rope.factor, 4.0);
  gguf.set("llama.rope.scaling.type", string_value("none"));
  EXPECT_EQ(hparams_of(gguf).rope.scaling, RopeScaling::kNone);
  EXPECT_EQ(hparams_of(gguf).rope.factor, 1.0);

  gguf.set("llama.rope.scaling.type", string_value("yarn"));
  gguf.set("llama.rope.scaling.original_context_length", u32_value(32));
  gguf.set("llama.rope.scaling.yarn_beta_fast", f32_value(16));
  Hparams h = hparams_of(gguf);
  EXPECT_EQ(h.rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(h.rope.original_context, 32);
  EXPECT_EQ(h.rope.beta_fast, 16.0);
  EXPECT_EQ(h.rope.beta_slow, 1.0);
  EXPECT_FALSE(h.rope.attention_factor.has_value());
  gguf.set("llama.rope.scaling.attn_factor", f32_value(0.5));
  EXPECT_DOUBLE_EQ(hparams_of(gguf).rope.attention_factor.value(), 0.5 * (0.1 * std::log(4.0) + 1.0));

  gguf = small_llama_gguf();
  gguf.set("llama.rope.scale_linear", f32_value(2));
  EXPECT_EQ(hparams_of(gguf).rope.factor, 2.0);
  gguf.set("llama.rope.scaling.type", string_value("longrope"));
  EXPECT_NE(error_of(gguf).find("longrope"), std::string::npos);
}

TEST(GgufHparams, KeepsLlama3FactorsAsATensor) {
  Gguf gguf = small_llama_gguf();
  gguf.add_f32("rope_freqs.weight", {2});
  EXPECT_NE(error_of(gguf).find("other than positive numbers"), std::string::npos);  // -1 and -0.75
  gguf.tensors.back().data = Bytes().add(1.0f).add(8.0f).str();
  const auto opened = open_gguf(gguf);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->find("rope_freqs.weight")->columns(), 2);
  gguf.tensors.back() = {.name = "rope_freqs.weight", .dims = {3}, .type = 0, .data = std::string(12, '\0')};
  EXPECT_NE(error_of(gguf).find("shape [3], not the [2]"), std::string::npos);
}

TEST(GgufHparams, GivesGemma3ItsWindowsAndBases) {
  Hparams h = hparams_of(small_gemma3_gguf(7));
  EXPECT_EQ(h.activation, "gelu_tanh");
  EXPECT_EQ(h.sliding_window, 16);
  EXPECT_EQ(h.layer_slides, (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_EQ(h.rope.theta, 1e6);
  ASSERT_TRUE(h.rope_local.has_value());
  EXPECT_EQ(h.rope_local->theta, 10000.0);
  EXPECT_TRUE(h.tied_embeddings);

  Gguf gguf = small_gemma3_gguf(3);
  gguf.set("gemma3.rope.scaling.type", string_value("linear"));
  gguf.set("gemma3.rope.scaling.factor", f32_value(8));
  gguf.set("gemma3.rope.freq_base_swa", f32_value(5000));
  gguf.set("gemma3.attention.sliding_window_pattern", u32_value(2));
  h = hparams_of(gguf);
  EXPECT_EQ(h.rope.factor, 8.0);
  EXPECT_EQ(h.rope_local->factor, 1.0);
  EXPECT_EQ(h.rope_local->theta, 5000.0);
  EXPECT_EQ(h.layer_slides, (std::vector<bool>{true, false, true}));
  gguf.set("gemma3.attention.sliding_window_pattern", bools_value({false, true, true}));
  EXPECT_EQ(hparams_of(gguf).layer_slides, (std::vector<bool>{false, true, true}));
  gguf.set("gemma3.attention.sliding_window_pattern", bools_value({false, true}));
  EXPECT_NE(error_of(gguf).find("2 entries for 3 layers"), std::string::npos);
}

TEST(GgufHparams, ScalesGemma3Of27BByHiddenOverHeads) {
  EXPECT_FALSE(hparams_of(small_gemma3_gguf(61)).attention_scale.has_value());
  Gguf gguf = small_gemma3_gguf(62);
  gguf.set("gemma3.attention.head_count", u32_value(4));
  gguf.set("gemma3.attention.key_length", u32_value(4));
  gguf.set("gemma3.attention.head_count_kv", u32_value(1));
  for (GgufTensor& tensor : gguf.tensors) {
    if (tensor.name.ends_with("attn_q.weight")) tensor = {tensor.name, {8, 16}, 0, std::string(512, '\0')};
    if (tensor.name.ends_with("attn_output.weight")) tensor = {tensor.name, {16, 8}, 0, std::string(512, '\0')};
  }
  EXPECT_FLOAT_EQ(hparams_of(gguf).attention_scale.value(), 1.0f / std::sqrt(2.0f));
}

TEST(GgufHparams, CollectsEverythingThatEndsAGeneration) {
  Gguf gguf = small_llama_gguf();
  gguf.set("tokenizer.ggml.tokens", strings_value({"<s>", "</s>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "x",
                                                   "<|end|>", "<end_of_turn>"}));
  // <|eot_id|> is ordinary text here, <|end|> user-defined.
  gguf.set("tokenizer.ggml.token_type", ints_value({3, 4, 3, 3, 1, 1, 4, 3}));
  gguf.set("tokenizer.ggml.eos_token_id", u32_value(5));
  EXPECT_EQ(hparams_of(gguf).eos_token_ids, (std::vector<int32_t>{2, 3, 5, 6, 7}));
  gguf.set("tokenizer.ggml.eot_token_id", u32_value(4));
  gguf.set("tokenizer.ggml.eom_token_id", u32_value(2));
  EXPECT_EQ(hparams_of(gguf).eos_token_ids, (std::vector<int32_t>{2, 3, 4, 5, 6, 7}));
  gguf.set("tokenizer.ggml.eot_token_id", u32_value(8));
  EXPECT_NE(error_of(gguf).find("tokenizer.ggml.eot_token_id"), std::string::npos);
}

TEST(GgufHparams, ReadsSamplingDefaults) {
  Gguf gguf = small_llama_gguf();
  gguf.set("general.sampling.temp", f32_value(0.5f));
  gguf.set("general.sampling.top_k", Bytes().add<uint32_t>(kI32).add<int32_t>(20).str());
  const Hparams h = hparams_of(gguf);
  EXPECT_EQ(h.default_temperature, 0.5f);
  EXPECT_EQ(h.default_top_k, 20);
  EXPECT_FALSE(h.default_top_p.has_value());
}

struct BadModel {
  const char* name;
  const char* message;
  std::function<void(Gguf&)> spoil;
};
void PrintTo(const BadModel& bad, std::ostream* out) { *out << bad.name; }

class BadModels : public testing::TestWithParam<BadModel> {};

TEST_P(BadModels, AreErrorsThatNameTheField) {
  Gguf gguf = small_llama_gguf();
  GetParam().spoil(gguf);
  const std::string message = error_of(gguf);
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << "message: " << message;
}

std::function<void(Gguf&)> with(std::string key, std::string value) {
  return [key = std::move(key), value = std::move(value)](Gguf& g) { g.set(key, value); };
}

const BadModel kBadModels[] = {
    {"no_architecture", "general.architecture", [](Gguf& g) { g.erase("general.architecture"); }},
    {"unknown_architecture", "\"rwkv7\" (general.architecture); supported are llama, qwen2, qwen3, gemma3",
     with("general.architecture", string_value("rwkv7"))},
    {"adapter", "holds \"adapter\"", with("general.type", string_value("adapter"))},
    {"no_layers", "llama.block_count\" is missing", [](Gguf& g) { g.erase("llama.block_count"); }},
    {"layers_0", "llama.block_count\" is 0", with("llama.block_count", u32_value(0))},
    {"layers_huge", "llama.block_count\" is 2000000000", with("llama.block_count", u32_value(2000000000))},
    {"layers_2", "\"blk.1.attn_k.weight\" is missing", with("llama.block_count", u32_value(2))},
    {"layers_text", "is not an integer", with("llama.block_count", string_value("1"))},
    {"hidden_float", "is not an integer", with("llama.embedding_length", f32_value(8))},
    {"hidden_other", "\"token_embd.weight\" has shape [8, 8], not the [8, 16]",
     with("llama.embedding_length", u32_value(16))},
    {"heads_0", "head_count\" is 0", with("llama.attention.head_count", u32_value(0))},
    {"heads_3", "does not divide the hidden size", with("llama.attention.head_count", u32_value(3))},
    {"kv_heads_unequal", "cannot share",
     [](Gguf& g) {
       g.set("llama.attention.head_count", u32_value(4));
       g.set("llama.attention.head_count_kv", u32_value(3));
     }},
    {"head_dim_odd", "is odd", with("llama.attention.head_count", u32_value(8))},
    {"head_dim_huge", "head size is 1024", with("llama.attention.key_length", u32_value(1024))},
    {"value_length", "differ", with("llama.attention.value_length", u32_value(8))},
    {"partial_rope", "rotates 2 of the 4", with("llama.rope.dimension_count", u32_value(2))},
    {"eps_0", "norm epsilon", with("llama.attention.layer_norm_rms_epsilon", f32_value(0))},
    {"eps_nan", "not a finite number", with("llama.attention.layer_norm_rms_epsilon", f32_value(NAN))},
    {"base_negative", "rope base", with("llama.rope.freq_base", f32_value(-1))},
    {"factor_inf", "not a finite number", with("llama.rope.scaling.factor", f32_value(INFINITY))},
    {"window_negative", "sliding_window",
     with("llama.attention.sliding_window", Bytes().add<uint32_t>(kI32).add(-5).str())},
    {"experts", "mixture of 8 experts", with("llama.expert_count", u32_value(8))},
    {"logit_scale", "logit_scale", with("llama.logit_scale", f32_value(8))},
    {"tokens_not_text", "not an array of strings", with("tokenizer.ggml.tokens", ints_value({1, 2}))},
    {"scores_short", "scores\" has 2 entries for 8 tokens", with("tokenizer.ggml.scores", floats_value({0, 0}))},
    {"scores_bytes", "scores\" is not an array of floats",
     with("tokenizer.ggml.scores", bools_value(std::vector<bool>(8)))},
    {"types_short", "token_type\" has 1 entries", with("tokenizer.ggml.token_type", ints_value({1}))},
    {"eos_outside", "eos_token_id\" is 8", with("tokenizer.ggml.eos_token_id", u32_value(8))},
    {"tokens_missing", "\"token_embd.weight\" has shape [8, 8], not the [2, 8]",
     [](Gguf& g) {
       g.set("tokenizer.ggml.tokens", strings_value({"<s>", "</s>"}));
       g.set("tokenizer.ggml.token_type", ints_value({3, 3}));
       g.set("tokenizer.ggml.scores", floats_value({0, 0}));
     }},
    {"no_tensors", "holds no tensors", [](Gguf& g) { g.tensors.clear(); }},
    {"missing_norm", "\"blk.0.ffn_norm.weight\" is missing",
     [](Gguf& g) { std::erase_if(g.tensors, [](const GgufTensor& t) { return t.name == "blk.0.ffn_norm.weight"; }); }},
};
INSTANTIATE_TEST_SUITE_P(Gguf, BadModels, testing::ValuesIn(kBadModels),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(GgufCheckpoint, CountsTensorsItHasNoUseFor) {
  Gguf gguf = small_llama_gguf();
  gguf.add_f32("blk.0.attn_rot_embd", {2});
  gguf.add_f32("blk.0.attn_q.bias", {8});
  const auto opened = open_gguf(gguf);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(std::vector<std::string>((*opened)->unused_tensors().begin(), (*opened)->unused_tensors().end()),
            std::vector<std::string>{"blk.0.attn_rot_embd"});
  EXPECT_NE((*opened)->find("blk.0.attn_q.bias"), nullptr);
}

TEST(GgufCheckpoint, NeedsTheBiasesOfQwen2) {
  Gguf gguf;
  const Gguf llama = small_llama_gguf();
  for (const auto& [key, value] : llama.entries)
    gguf.set(key.starts_with("llama.") ? "qwen2." + key.substr(6) : key, value);
  gguf.set("general.architecture", string_value("qwen2"));
  gguf.tensors = llama.tensors;
  EXPECT_NE(error_of(gguf).find("\"blk.0.attn_k.bias\" is missing"), std::string::npos);
  gguf.add_f32("blk.0.attn_q.bias", {8});
  gguf.add_f32("blk.0.attn_k.bias", {4});
  gguf.add_f32("blk.0.attn_v.bias", {4});
  const auto opened = open_gguf(gguf);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->find("blk.0.attn_q.weight")->interleaved_head_dim, 0);
  gguf.add_f32("blk.0.attn_output.bias", {8});
  EXPECT_NE(error_of(gguf).find("\"blk.0.attn_output.bias\" is there"), std::string::npos);
}

// Two parts; the second holds the layer.
std::vector<Gguf> split_small_llama() {
  std::vector<Gguf> parts(2);
  parts[0] = small_llama_gguf();
  std::erase_if(parts[0].tensors, [](const GgufTensor& t) { return t.name.starts_with("blk."); });
  parts[1].tensors = small_llama_gguf().tensors;
  std::erase_if(parts[1].tensors, [](const GgufTensor& t) { return !t.name.starts_with("blk."); });
  for (uint16_t i = 0; i < 2; ++i) {
    parts[i].set("split.no", u16_value(i));
    parts[i].set("split.count", u16_value(2));
    parts[i].set("split.tensors.count", Bytes().add<uint32_t>(kI32).add(12).str());
  }
  return parts;
}

std::string open_split(const std::vector<Gguf>& parts, const std::string& opened = "m-00001-of-00002.gguf") {
  const TempDir dir;
  dir.write("m-00001-of-00002.gguf", parts[0].bytes());
  if (parts.size() > 1) dir.write("m-00002-of-00002.gguf", parts[1].bytes());
  const auto checkpoint = Checkpoint::open(dir.path() + "/" + opened);
  return checkpoint.ok() ? "" : checkpoint.status().message();
}

TEST(GgufSplit, OpensFromAnyPart) {
  EXPECT_EQ(open_split(split_small_llama()), "");
  EXPECT_EQ(open_split(split_small_llama(), "m-00002-of-00002.gguf"), "");
}

TEST(GgufSplit, RefusesPartsThatDoNotFit) {
  auto parts = split_small_llama();
  parts.pop_back();
  EXPECT_NE(open_split(parts).find("m-00002-of-00002.gguf: no such file"), std::string::npos);

  parts = split_small_llama();
  parts[1].set("split.no", u16_value(0));
  EXPECT_NE(open_split(parts).find("says it is part 1 of 2"), std::string::npos);

  parts = split_small_llama();
  parts[1].set("split.count", u16_value(3));
  EXPECT_NE(open_split(parts).find("says it is part 2 of 3"), std::string::npos);

  parts = split_small_llama();
  parts[0].set("split.no", u16_value(2));
  EXPECT_NE(open_split(parts).find("split.no\" is 2"), std::string::npos);

  parts = split_small_llama();
  parts[0].set("split.count", u16_value(3));
  EXPECT_NE(open_split(parts).find("must end in \"-00001-of-00003.gguf\""), std::string::npos);

  parts = split_small_llama();
  parts[0].set("split.count", u32_value(4000000000u));
  EXPECT_NE(open_split(parts).find("split.count\" is 4000000000"), std::string::npos);

  parts = split_small_llama();
  parts[0].set("split.tensors.count", u32_value(13));
  EXPECT_NE(open_split(parts).find("hold 12 tensors, but split.tensors.count is 13"), std::string::npos);

  parts = split_small_llama();
  parts[0].set("split.tensors.count", u32_value(13));
  parts[1].add_f32("output.weight", {8, 8});
  EXPECT_NE(open_split(parts).find("\"output.weight\" occurs twice"), std::string::npos);
}

}  // namespace
}  // namespace quire
