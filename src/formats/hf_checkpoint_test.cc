#include "formats/hf_checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/test_files.h"

namespace quire {
namespace {

using namespace testing_files;
using Tensors = std::map<std::string, SafetensorsItem>;

// `config` with keys added or replaced; values are JSON.
std::string changed(const std::string& config, const std::vector<std::pair<std::string, std::string>>& changes) {
  auto json = nlohmann::json::parse(config);
  for (const auto& [key, value] : changes) json[key] = nlohmann::json::parse(value);
  return json.dump();
}

Result<std::unique_ptr<Checkpoint>> open_small(const std::string& config,
                                               const Tensors& tensors = small_llama_tensors(),
                                               const std::string& generation = "") {
  const TempDir dir;
  dir.write("config.json", config);
  dir.write("model.safetensors", safetensors_bytes(tensors));
  if (!generation.empty()) dir.write("generation_config.json", generation);
  return Checkpoint::open(dir.path());
}

Hparams hparams_of(const std::string& config, const Tensors& tensors = small_llama_tensors(),
                   const std::string& generation = "") {
  const auto opened = open_small(config, tensors, generation);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.ok() ? (*opened)->hparams() : Hparams();
}

std::string error_of(const std::string& config, const Tensors& tensors = small_llama_tensors(),
                     const std::string& generation = "") {
  const auto opened = open_small(config, tensors, generation);
  return opened.ok() ? "" : opened.status().message();
}

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Tensors small_gemma3_tensors(int layers) {
  const Tensors llama = small_llama_tensors();
  Tensors tensors{{"model.embed_tokens.weight", llama.at("model.embed_tokens.weight")},
                  {"model.norm.weight", llama.at("model.norm.weight")}};
  const SafetensorsItem& norm = llama.at("model.norm.weight");
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const auto& [name, item] : llama) {
      if (name.starts_with("model.layers.0.")) tensors[prefix + name.substr(15)] = item;
    }
    for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
      tensors[prefix + name + ".weight"] = norm;
    }
    for (const char* name : {"self_attn.q_norm", "self_attn.k_norm"}) {
      tensors[prefix + name + ".weight"] = {"F32", {4}, norm.data.substr(0, 16)};
    }
  }
  return tensors;
}

std::string small_gemma3_config(const std::vector<std::pair<std::string, std::string>>& changes = {}) {
  return changed(R"({"model_type": "gemma3_text", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 16,
"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "sliding_window": 16,
"eos_token_id": [1, 6]})",
                 changes);
}

TEST(HfConfig, ReadsLlamaAndItsDefaults) {
  const Hparams h = hparams_of(small_llama_config());
  EXPECT_EQ(h.architecture, "llama");
  EXPECT_EQ(h.kv_heads, 1);
  EXPECT_EQ(h.head_dim, 4);
  EXPECT_EQ(h.rope_dim, 4);
  EXPECT_EQ(h.context_length, 64);
  EXPECT_FLOAT_EQ(h.rms_norm_eps, 1e-5f);
  EXPECT_FALSE(h.tied_embeddings);
  EXPECT_EQ(h.activation, "silu");
  EXPECT_EQ(h.layer_slides, std::vector<bool>{false});
  EXPECT_EQ(h.eos_token_ids, std::vector<int32_t>{1});
  // The class, where there is no model_type; a null counts as absent.
  std::string config = small_llama_config();
  config.replace(config.find("\"model_type\": \"llama\""), 21, "\"head_dim\": null");
  EXPECT_EQ(hparams_of(config).head_dim, 4);
}

TEST(HfConfig, TiesEmbeddingsUnlessTheStoredHeadDiffers) {
  const std::string config = changed(small_llama_config(), {{"tie_word_embeddings", "true"}});
  Tensors tensors = small_llama_tensors();
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  const auto tied = open_small(config, tensors);
  ASSERT_TRUE(tied.ok()) << tied.status().message();
  EXPECT_TRUE((*tied)->hparams().tied_embeddings);
  EXPECT_EQ((*tied)->find("output.weight"), nullptr);
  EXPECT_EQ((*tied)->unused_tensors().front(), "lm_head.weight");
  EXPECT_TRUE((*tied)->remarks().empty());

  tensors["lm_head.weight"].data[5] ^= 1;
  const auto own = open_small(config, tensors);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_FALSE((*own)->hparams().tied_embeddings);
  EXPECT_NE((*own)->find("output.weight"), nullptr);
  ASSERT_EQ((*own)->remarks().size(), 1u);
  EXPECT_MENTIONS((*own)->remarks().front(), "\"lm_head.weight\" is stored and differs");

  tensors.erase("lm_head.weight");
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "\"lm_head.weight\" is missing");
}

TEST(HfConfig, ReadsRopeOfEitherStyle) {
  const char* old_llama3 = R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 16})";
  const Hparams old_style =
      hparams_of(changed(small_llama_config(), {{"rope_theta", "5e5"}, {"rope_scaling", old_llama3}}));
  const char* new_llama3 = R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 16, "rope_theta": 500000})";
  const std::string config = changed(small_llama_config(), {{"rope_theta", "null"}, {"rope_parameters", new_llama3}});
  for (const Hparams& h : {old_style, hparams_of(config)}) {
    EXPECT_EQ(h.rope.theta, 5e5);
    EXPECT_EQ(h.rope.scaling, RopeScaling::kLlama3);
    EXPECT_EQ(h.rope.factor, 32.0);
    EXPECT_EQ(h.rope.original_context, 16);
  }
  const auto scaled = [](const char* scaling) {
    return hparams_of(changed(small_llama_config(), {{"rope_scaling", scaling}})).rope;
  };
  EXPECT_EQ(scaled("null").scaling, RopeScaling::kNone);
  EXPECT_EQ(scaled(R"({"type": "linear", "factor": 2})").scaling, RopeScaling::kLinear);
  EXPECT_EQ(scaled(R"({"type": "dynamic", "factor": 2.0})").scaling, RopeScaling::kDynamic);
  EXPECT_EQ(scaled(R"({"type": "linear", "factor": 1.0})").scaling, RopeScaling::kNone);
  const RopeParams yarn = scaled(R"({"rope_type": "yarn", "factor": 4.0, "beta_fast": 16, "truncate": false,
                                     "attention_factor": 1.25, "mscale": 1.0, "mscale_all_dim": 0.5})");
  EXPECT_EQ(yarn.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.beta_fast, 16.0);
  EXPECT_FALSE(yarn.truncate);
  EXPECT_EQ(yarn.attention_factor, 1.25);
  EXPECT_EQ(yarn.mscale_all_dim, 0.5);
  const RopeParams longrope = scaled(R"({"type": "su", "short_factor": [1, 2], "long_factor": [3.0, 4.5]})");
  EXPECT_EQ(longrope.scaling, RopeScaling::kLongrope);
  EXPECT_EQ(longrope.long_factors, (std::vector<float>{3.0f, 4.5f}));
}

TEST(HfConfig, SlidesMistralUnlessTheWindowIsNull) {
  const std::string mistral = changed(small_llama_config(), {{"model_type", "\"mistral\""}});
  EXPECT_EQ(hparams_of(mistral).sliding_window, 4096);  // the class's default
  EXPECT_EQ(hparams_of(changed(mistral, {{"sliding_window", "32"}})).sliding_window, 32);
  EXPECT_EQ(hparams_of(changed(mistral, {{"sliding_window", "32"}})).layer_slides, std::vector<bool>{true});
  EXPECT_EQ(hparams_of(changed(mistral, {{"sliding_window", "null"}})).sliding_window, 0);
  EXPECT_EQ(hparams_of(changed(small_llama_config(), {{"sliding_window", "32"}})).sliding_window, 0);
}

TEST(HfConfig, SlidesTheUpperLayersOfQwen2OnDemand) {
  Tensors tensors = small_llama_tensors();
  for (const auto& [name, item] : small_llama_tensors()) {
    if (name.starts_with("model.layers.0.")) tensors["model.layers.1." + name.substr(15)] = item;
  }
  for (const std::string layer : {"0", "1"}) {
    const auto bias = [&](const char* which) { return "model.layers." + layer + ".self_attn." + which + "_proj.bias"; };
    tensors[bias("q")] = {"BF16", {8}, std::string(16, '\0')};
    tensors[bias("k")] = {"F16", {4}, std::string(8, '\0')};
    tensors[bias("v")] = {"F32", {4}, std::string(16, '\0')};
  }
  const std::string qwen2 = changed(
      small_llama_config(),
      {{"model_type", "\"qwen2\""}, {"num_hidden_layers", "2"}, {"sliding_window", "16"}, {"max_window_layers", "1"}});
  EXPECT_EQ(hparams_of(qwen2, tensors).sliding_window, 0);
  const std::string sliding = changed(qwen2, {{"use_sliding_window", "true"}});
  EXPECT_EQ(hparams_of(sliding, tensors).sliding_window, 16);
  EXPECT_EQ(hparams_of(sliding, tensors).layer_slides, (std::vector<bool>{false, true}));
  const std::string typed = changed(sliding, {{"layer_types", R"(["sliding_attention", "full_attention"])"}});
  EXPECT_EQ(hparams_of(typed, tensors).layer_slides, (std::vector<bool>{true, false}));
  tensors.erase("model.layers.1.self_attn.k_proj.bias");
  EXPECT_MENTIONS(error_of(qwen2, tensors), "\"model.layers.1.self_attn.k_proj.bias\" is missing");
}

TEST(HfConfig, ReadsGemma3AndItsDefaults) {
  const Hparams h = hparams_of(small_gemma3_config(), small_gemma3_tensors(1));
  EXPECT_EQ(h.architecture, "gemma3");
  EXPECT_EQ(h.activation, "gelu_tanh");
  EXPECT_TRUE(h.tied_embeddings);
  EXPECT_EQ(h.rope.theta, 1e6);
  EXPECT_EQ(h.rope_local->theta, 1e4);
  EXPECT_FLOAT_EQ(h.attention_scale.value(), 1.0f / 16);  // query_pre_attn_scalar 256, heads of 4
  EXPECT_EQ(h.context_length, 131072);
  EXPECT_FLOAT_EQ(h.rms_norm_eps, 1e-6f);
  EXPECT_EQ(h.eos_token_ids, (std::vector<int32_t>{1, 6}));
  EXPECT_EQ(h.layer_slides, std::vector<bool>{true});

  const Hparams seven = hparams_of(small_gemma3_config({{"num_hidden_layers", "7"}, {"query_pre_attn_scalar", "4"}}),
                                   small_gemma3_tensors(7));
  EXPECT_EQ(seven.layer_slides, (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_FALSE(seven.attention_scale.has_value());

  const Hparams old = hparams_of(small_gemma3_config({{"rope_theta", "2e6"},
                                                      {"rope_local_base_freq", "5000"},
                                                      {"sliding_window_pattern", "1"},
                                                      {"final_logit_softcapping", "30.0"},
                                                      {"rope_scaling", R"({"rope_type": "linear", "factor": 8.0})"}}),
                                 small_gemma3_tensors(1));
  EXPECT_EQ(old.rope.theta, 2e6);
  EXPECT_EQ(old.rope.factor, 8.0);
  EXPECT_EQ(old.rope_local->theta, 5000.0);
  EXPECT_EQ(old.rope_local->factor, 1.0);
  EXPECT_EQ(old.layer_slides, std::vector<bool>{false});
  EXPECT_EQ(old.final_softcap, 30.0f);
}

TEST(HfConfig, ReadsTheTextModelOfMultimodalGemma3) {
  const std::string config = R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
"eos_token_id": [1, 5], "vision_config": {"hidden_size": 1152}, "text_config": )" +
                             small_gemma3_config() + "}";
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    Tensors tensors;
    for (const auto& [name, item] : small_gemma3_tensors(1)) tensors[prefix + name.substr(6)] = item;
    tensors["vision_tower.vision_model.embeddings.position_ids"] = {"I64", {1}, std::string(8, '\0')};
    const auto opened = open_small(config, tensors);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    EXPECT_EQ((*opened)->hparams().eos_token_ids, (std::vector<int32_t>{1, 5}));
    EXPECT_NE((*opened)->find("blk.0.post_ffw_norm.weight"), nullptr);
    EXPECT_EQ((*opened)->unused_tensors().size(), 1u);
  }
}

TEST(HfConfig, UnitesWhatEndsAGenerationAndReadsSamplingDefaults) {
  const Hparams h =
      hparams_of(small_llama_config(), small_llama_tensors(),
                 R"({"eos_token_id": [7, 1, 3], "do_sample": true, "temperature": 0.7, "top_k": 20, "top_p": 0.8})");
  EXPECT_EQ(h.eos_token_ids, (std::vector<int32_t>{1, 3, 7}));
  EXPECT_EQ(h.default_temperature, 0.7f);
  EXPECT_EQ(h.default_top_k, 20);
  EXPECT_EQ(h.default_top_p, 0.8f);
  // A penalty counts whatever is said of sampling; the rest only where something is.
  const Hparams silent = hparams_of(small_llama_config(), small_llama_tensors(),
                                    R"({"temperature": 0.7, "min_p": 0.1, "repetition_penalty": 1.5})");
  EXPECT_FALSE(silent.default_temperature.has_value());
  EXPECT_FALSE(silent.default_min_p.has_value());
  EXPECT_EQ(silent.default_repetition_penalty, 1.5f);
  const Hparams greedy = hparams_of(small_llama_config(), small_llama_tensors(),
                                    R"({"do_sample": false, "temperature": 0.7, "top_k": -1})");
  EXPECT_EQ(greedy.default_temperature, 0.0f);
  EXPECT_EQ(greedy.default_top_k, 0);
  EXPECT_MENTIONS(error_of(small_llama_config(), small_llama_tensors(), R"({"eos_token_id": 8})"), "token 8");
}

TEST(HfConfig, DemandsTheBiasesItAnnounces) {
  const std::string config = changed(small_llama_config(), {{"attention_bias", "true"}});
  EXPECT_MENTIONS(error_of(config), "\"model.layers.0.self_attn.k_proj.bias\" is missing");
  Tensors tensors = small_llama_tensors();
  tensors["model.layers.0.mlp.up_proj.bias"] = {"F32", {16}, std::string(64, '\x3f')};
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "\"model.layers.0.mlp.up_proj.bias\" is there");
  // Old quantizers wrote zeros for every linear.
  tensors["model.layers.0.mlp.up_proj.bias"].data.assign(64, '\0');
  EXPECT_EQ(error_of(small_llama_config(), tensors), "");
}

struct BadConfig {
  const char* name;
  const char* message;
  std::vector<std::pair<std::string, std::string>> changes;
};
void PrintTo(const BadConfig& bad, std::ostream* out) { *out << bad.name; }

class BadConfigs : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigs, AreErrorsThatNameTheKey) {
  const std::string message = error_of(changed(small_llama_config(), GetParam().changes));
  EXPECT_MENTIONS(message, GetParam().message);
  EXPECT_MENTIONS(message, "config.json");
}

const BadConfig kBadConfigs[] = {
    {"unknown_type",
     "\"falcon_h1\"; supported are llama, mistral, qwen2, qwen3, gemma3_text, gemma3",
     {{"model_type", "\"falcon_h1\""}}},
    {"quantized", "\"quant_method\" is \"hqq\"", {{"quantization_config", R"({"quant_method": "hqq"})"}}},
    {"classifier", "does not generate text", {{"architectures", R"(["LlamaForSequenceClassification"])"}}},
    {"hidden_text", "\"hidden_size\" is not an integer", {{"hidden_size", "\"8\""}}},
    {"hidden_negative", "\"hidden_size\" is -8", {{"hidden_size", "-8"}}},
    {"hidden_null", "\"hidden_size\" is missing", {{"hidden_size", "null"}}},
    {"layers_huge", "\"num_hidden_layers\" is 1000000000", {{"num_hidden_layers", "1000000000"}}},
    {"layers_huger", "\"num_hidden_layers\" is not an integer", {{"num_hidden_layers", "18446744073709551615"}}},
    {"heads_3", "does not divide hidden_size", {{"num_attention_heads", "3"}}},
    {"kv_heads_3", "cannot share", {{"num_attention_heads", "4"}, {"num_key_value_heads", "3"}}},
    {"eps_negative", "norm epsilon", {{"rms_norm_eps", "-1e-5"}}},
    {"activation", "\"gelu\"", {{"hidden_act", "\"gelu\""}}},
    {"rope_type", "\"mrope\"", {{"rope_scaling", R"({"type": "mrope"})"}}},
    {"rope_factor", "\"factor\" is missing", {{"rope_scaling", R"({"type": "linear"})"}}},
    {"rope_factor_negative", "rope scaling factor", {{"rope_scaling", R"({"type": "linear", "factor": -2})"}}},
    {"rope_llama3",
     "high_freq_factor > low_freq_factor",
     {{"rope_scaling", R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})"}}},
    {"rope_longrope",
     "1 factors",
     {{"rope_scaling", R"({"type": "longrope", "long_factor": [1], "short_factor": [1]})"}}},
    {"rope_llama3_bare", "\"factor\" is missing", {{"rope_scaling", R"({"rope_type": "llama3"})"}}},
    {"rope_partial",
     "rotates whole heads",
     {{"partial_rotary_factor", "0.5"}, {"rope_scaling", R"({"rope_type": "linear", "factor": 2})"}}},
    {"rope_nested", "share one rope", {{"rope_parameters", R"({"full_attention": {"rope_type": "default"}})"}}},
    {"rope_not_object", "\"rope_scaling\" is not an object", {{"rope_scaling", "[]"}}},
    {"tied_text", "\"tie_word_embeddings\" is not true or false", {{"tie_word_embeddings", "\"yes\""}}},
    {"eos_text", "\"eos_token_id\" is not an integer", {{"eos_token_id", "\"</s>\""}}},
    {"eos_negative", "\"eos_token_id\" holds -1", {{"eos_token_id", "-1"}}},
    {"window_0", "\"sliding_window\" is 0", {{"model_type", "\"mistral\""}, {"sliding_window", "0"}}},
    {"layer_types_short",
     "2 entries for 1 layers",
     {{"model_type", "\"qwen2\""}, {"layer_types", R"(["full_attention", "full_attention"])"}}},
    {"layer_types_unknown",
     "\"chunked_attention\"",
     {{"model_type", "\"qwen2\""}, {"layer_types", R"(["chunked_attention"])"}}},
    {"layer_types_no_window",
     "\"sliding_window\" is not set",
     {{"model_type", "\"qwen2\""}, {"layer_types", R"(["sliding_attention"])"}}},
};
INSTANTIATE_TEST_SUITE_P(Hf, BadConfigs, testing::ValuesIn(kBadConfigs),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(HfConfig, RefusesHostileJson) {
  EXPECT_MENTIONS(error_of("{\"a\": 1, \"a\": 2}"), "\"a\" twice");
  EXPECT_MENTIONS(error_of("{\"a\": " + std::string(100000, '[')), "nested more than");
  EXPECT_MENTIONS(error_of("[]"), "does not hold a JSON object");
  EXPECT_MENTIONS(error_of("{\"a\": \"\xff\"}"), "not valid JSON");
  EXPECT_MENTIONS(error_of(""), "not valid JSON");
  EXPECT_MENTIONS(error_of("{} {}"), "not valid JSON");
  std::string many = "{\"a\": [0";
  for (int i = 0; i < 1100000; ++i) many += ",0";
  EXPECT_MENTIONS(error_of(many + "]}"), "more than 1000000 values");
  EXPECT_MENTIONS(error_of("{\"a\": \"" + std::string(5 << 20, 'x') + "\"}"), "bytes; at most");
}

TEST(HfCheckpoint, RefusesTypesAndShapesItCannotRun) {
  Tensors tensors = small_llama_tensors();
  tensors["model.norm.weight"] = {"I8", {8}, std::string(8, '\0')};
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "\"model.norm.weight\" has type I8");
  tensors = small_llama_tensors();
  tensors["model.norm.weight"] = {"F32", {}, std::string(4, '\0')};
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "\"model.norm.weight\" has 0 dimensions");
  tensors["model.norm.weight"] = {"F32", {9}, std::string(36, '\0')};
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "\"model.norm.weight\" has shape [9], not the [8]");
  tensors["model.norm.weight"] = {"F32", {0}, ""};
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "has shape [0]");
  tensors = small_llama_tensors();
  tensors["language_model.model.norm.weight"] = tensors["model.norm.weight"];
  EXPECT_MENTIONS(error_of(small_llama_config(), tensors), "occurs twice");
}

TEST(HfCheckpoint, ToleratesRotaryTables) {
  Tensors tensors = small_llama_tensors();
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {"F64", {2}, std::string(16, '\0')};
  tensors["model.layers.00.input_layernorm.weight"] = tensors["model.norm.weight"];
  const auto opened = open_small(small_llama_config(), tensors);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->unused_tensors().size(), 2u);
}

const char* kInt8Config = R"({"quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
  "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 8, "strategy": "channel"}}}})";

// The small model with q_proj as int8.
Tensors int8_tensors(const std::string& module = "model.layers.0.self_attn.q_proj") {
  Tensors tensors = small_llama_tensors();
  const std::vector<int64_t> shape = tensors.at(module + ".weight").shape;
  tensors[module + ".weight"] = {"I8", shape, std::string(static_cast<size_t>(shape[0] * shape[1]), '\3')};
  std::string scales;
  for (int64_t i = 0; i < shape[0]; ++i) scales += std::string("\0\0\0\x3f", 4);  // 0.5
  tensors[module + ".weight_scale"] = {"F32", {shape[0], 1}, scales};
  return tensors;
}

TEST(HfCheckpoint, OpensQuantizedLinears) {
  const std::string config = changed(small_llama_config(), {{"quantization_config", kInt8Config}});
  const TempDir dir;
  dir.write("config.json", config);
  dir.write("model.safetensors", safetensors_bytes(int8_tensors()));
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const TensorRef* q = (*opened)->find("blk.0.attn_q.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->type_name(), "compressed-tensors 8-bit, a scale a row, symmetric");
  EXPECT_EQ(q->bytes, 8 * 8 + 8 * 4);
  std::vector<float> row(8);
  q->decode_f32(3, 1, row.data());
  EXPECT_EQ(row, std::vector<float>(8, 1.5f));
  EXPECT_EQ((*opened)->find("blk.0.attn_k.weight")->type_name(), "F32");  // plain, whatever the settings say
}

TEST(HfCheckpoint, RefusesQuantizedLinearsThatTheSettingsDoNotExplain) {
  const std::string config = changed(small_llama_config(), {{"quantization_config", kInt8Config}});
  EXPECT_MENTIONS(error_of(small_llama_config(), int8_tensors()), "has no quantization_config");
  EXPECT_MENTIONS(error_of(config, int8_tensors("lm_head")), "says that its module is not");
  EXPECT_MENTIONS(error_of(config, int8_tensors("model.embed_tokens")), "quantizes the embedding");
  Tensors missing = int8_tensors();
  missing.erase("model.layers.0.self_attn.q_proj.weight_scale");
  EXPECT_MENTIONS(error_of(config, missing), "\"weight_scale\" of this compressed-tensors module is missing");
  Tensors extra = int8_tensors();
  extra["model.layers.0.self_attn.q_proj.qweight"] = {"I32", {1}, std::string(4, '\0')};
  EXPECT_MENTIONS(error_of(config, extra), "q_proj.qweight\" does not belong");
  Tensors short_rows = int8_tensors();
  short_rows["model.layers.0.self_attn.q_proj.weight"] = {"I8", {8, 4}, std::string(32, '\1')};
  EXPECT_MENTIONS(error_of(config, short_rows), "q_proj.weight\" has shape [8, 4], not the [8, 8]");
}

// A sharded directory; `index` may be nonsense.
std::string open_shards(const std::string& index) {
  const TempDir dir;
  dir.write("config.json", small_llama_config());
  Tensors first = small_llama_tensors(), second;
  second.insert(first.extract("lm_head.weight"));
  dir.write("a.safetensors", safetensors_bytes(first));
  dir.write("b.safetensors", safetensors_bytes(second));
  dir.write("model.safetensors.index.json", index);
  const auto opened = Checkpoint::open(dir.path());
  return opened.ok() ? "" : opened.status().message();
}

std::string index_with(const std::string& extra) {
  std::string map = R"("lm_head.weight": "b.safetensors")";
  for (const auto& [name, item] : small_llama_tensors()) {
    if (name != "lm_head.weight") map += ", \"" + name + "\": \"a.safetensors\"";
  }
  return "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {" + map + extra + "}}";
}

TEST(HfCheckpoint, OpensShards) { EXPECT_EQ(open_shards(index_with("")), ""); }

TEST(HfCheckpoint, RefusesBadIndices) {
  EXPECT_MENTIONS(open_shards(index_with(R"(, "x": "a.safetensors")")), "holds tensor \"x\", but it does not");
  EXPECT_MENTIONS(open_shards(index_with(R"(, "x": "c.safetensors")")), "c.safetensors: no such file");
  EXPECT_MENTIONS(open_shards(R"({"weight_map": {"lm_head.weight": "b.safetensors"}})"), "is missing");
  for (const char* name : {"../a.safetensors", "/etc/passwd", "..", "", "sub/a.safetensors", "a\\\\..\\\\b.safetensors",
                           "a.bin", ".hidden.safetensors", "a\\u0000.safetensors"}) {
    EXPECT_MENTIONS(open_shards(R"({"weight_map": {"x": ")" + std::string(name) + "\"}}"), "is not the plain name");
  }
  EXPECT_MENTIONS(open_shards(R"({"weight_map": {"x": 5}})"), "is not a string");
  EXPECT_MENTIONS(open_shards(R"({"weight_map": []})"), "no \"weight_map\"");
  EXPECT_MENTIONS(open_shards("{}"), "no \"weight_map\"");
  EXPECT_MENTIONS(open_shards("{\"weight_map\": "), "not valid JSON");
  EXPECT_MENTIONS(open_shards(index_with(R"(, "lm_head.weight": "a.safetensors")")), "twice");
}

TEST(HfCheckpoint, SaysWhichWeightsItLooksFor) {
  const TempDir dir;
  dir.write("config.json", small_llama_config());
  dir.write("pytorch_model.bin", "x");
  const auto opened = Checkpoint::open(dir.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_MENTIONS(opened.status().message(), "neither model.safetensors nor model.safetensors.index.json");
}

// The small model in files of these names: all tensors in one, or the head in the second.
Result<std::unique_ptr<Checkpoint>> open_named(const std::vector<std::string>& names) {
  const TempDir dir;
  dir.write("config.json", small_llama_config());
  Tensors first = small_llama_tensors(), second;
  if (names.size() > 1) second.insert(first.extract("lm_head.weight"));
  dir.write(names[0], safetensors_bytes(first));
  if (names.size() > 1) dir.write(names[1], safetensors_bytes(second));
  return Checkpoint::open(dir.path());
}

TEST(HfCheckpoint, FindsWeightsWithoutAnIndex) {
  for (const auto& names : {std::vector<std::string>{"gptq_model-4bit-128g.safetensors"},
                            {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}}) {
    const auto opened = open_named(names);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    ASSERT_EQ((*opened)->remarks().size(), 1u);
    EXPECT_MENTIONS((*opened)->remarks().front(), names[0]);
  }
  EXPECT_MENTIONS(
      open_named({"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"}).status().message(),
      "not part 3");
  EXPECT_MENTIONS(open_named({"a.safetensors", "b.safetensors"}).status().message(),
                  "\"a.safetensors\", \"b.safetensors\"; leave one");
}

TEST(HfCheckpoint, SaysThatAFileIsAGitLfsPointer) {
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234\n";
  for (const char* name : {"model.safetensors", "tokenizer.json"}) {
    const TempDir dir;
    dir.write("config.json", small_llama_config());
    dir.write("model.safetensors", safetensors_bytes(small_llama_tensors()));
    dir.write(name, kPointer);
    const auto opened = Checkpoint::open(dir.path());
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_MENTIONS(opened.status().message(), std::string(name) + ": is a Git LFS pointer");
  }
}

// What is remarked on; empty: nothing.
std::string remarks_of(const std::vector<std::pair<std::string, std::string>>& changes,
                       const std::string& generation = "") {
  const auto opened = open_small(changed(small_llama_config(), changes), small_llama_tensors(), generation);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  std::string all;
  if (opened.ok()) {
    for (const std::string& remark : (*opened)->remarks()) all += remark + "\n";
  }
  return all;
}

TEST(HfRemarks, NameWhatIsSetAside) {
  EXPECT_EQ(remarks_of({{"torch_dtype", "\"bfloat16\""}, {"mlp_bias", "false"}, {"sliding_window", "null"}}), "");
  EXPECT_MENTIONS(remarks_of({{"sliding_window", "4096"}}), "\"sliding_window\": 4096 has no effect on a llama model");
  EXPECT_MENTIONS(remarks_of({{"no_such_key", "1"}}), "\"no_such_key\": 1");
  EXPECT_MENTIONS(remarks_of({{"architectures", R"(["MistralForCausalLM"])"}}), "\"MistralForCausalLM\"");
  EXPECT_MENTIONS(remarks_of({{"partial_rotary_factor", "0.5"}}), "rotates whole heads; the key is ignored");
  const std::string both = remarks_of({{"rope_scaling", R"({"rope_type": "linear", "factor": 2})"},
                                       {"rope_parameters", R"({"rope_type": "default", "rope_theta": 77})"}});
  EXPECT_MENTIONS(both, "\"rope_scaling\" is used");
  EXPECT_MENTIONS(both, "\"rope_theta\": 77");
  EXPECT_MENTIONS(remarks_of({{"rope_theta", "5"}, {"rope_parameters", R"({"rope_theta": 7})"}}),
                  "rope_theta is 7 in the rope's own object");
  EXPECT_MENTIONS(remarks_of({{"rope_parameters", R"({"rope_type": "default", "factor": 7})"}}),
                  "\"factor\": 7 has no effect on a rope of type default");
  EXPECT_MENTIONS(remarks_of({}, R"({"no_repeat_ngram_size": 3, "num_beams": 1, "typical_p": 1.0})"),
                  "\"no_repeat_ngram_size\": 3 is not obeyed");
  EXPECT_EQ(remarks_of({}, R"({"num_beams": 1, "typical_p": 1, "transformers_version": "5"})"), "");
  EXPECT_MENTIONS(remarks_of({}, R"({"eos_token_id": 3})"), "each of both ends an answer");
}

TEST(HfRope, IsReadAsTransformersDoes) {
  const auto rope = [](const std::vector<std::pair<std::string, std::string>>& changes) {
    return hparams_of(changed(small_llama_config(), changes)).rope;
  };
  // Expected values: transformers 5.24's RotaryEmbeddingConfigMixin.
  const RopeParams yarn = rope({{"rope_parameters", R"({"rope_type": "default", "rope_theta": 5000.0})"},
                                {"rope_scaling", R"({"rope_type": "yarn", "factor": 4.0})"}});
  EXPECT_EQ(yarn.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.theta, 10000.0);
  EXPECT_EQ(yarn.original_context, 64);
  const RopeParams outer =
      rope({{"original_max_position_embeddings", "16"}, {"rope_scaling", R"({"rope_type": "yarn", "factor": null,
                                                     "original_max_position_embeddings": 32, "beta_fast": 0})"}});
  EXPECT_EQ(outer.original_context, 16);
  EXPECT_EQ(outer.factor, 4.0);
  EXPECT_EQ(outer.beta_fast, 32.0);
  const Hparams gemma = [&] {
    const auto opened = open_small(small_gemma3_config({{"rope_scaling", R"({"rope_type": "linear", "factor": 8})"},
                                                        {"rope_parameters", R"({"full_attention": {"rope_theta": 5e5},
                                                                                "sliding_attention": null})"}}),
                                   small_gemma3_tensors(1));
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return (*opened)->hparams();
  }();
  EXPECT_EQ(gemma.rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(gemma.rope.theta, 5e5);
  EXPECT_EQ(gemma.rope_local->theta, 1e4);
}

}  // namespace
}  // namespace quire
