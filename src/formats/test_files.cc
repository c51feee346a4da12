#include "formats/test_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/messages.h"

namespace quire::testing_files {
namespace {

std::string f32_bytes(size_t count) {
  Bytes bytes;
  for (size_t i = 0; i < count; ++i) bytes.add(static_cast<float>(i) * 0.25f - 1.0f);
  return bytes.str();
}

template <typename T>
std::string array_value(uint32_t type, const std::vector<T>& values) {
  Bytes bytes;
  bytes.add<uint32_t>(kArray).add(type).template add<uint64_t>(values.size());
  for (const T value : values) bytes.add(value);
  return bytes.str();
}

}  // namespace

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "quire-formats-XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TempDir::write(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path path = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}

void TempDir::rewrite(const std::string& path, std::string_view bytes) const {
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

double Stopwatch::seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool Stopwatch::within_a_second() const {
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr double kLimit = 1.0;
#else
  constexpr double kLimit = 10.0;
#endif
  return seconds() - start_seconds_ < kLimit;
}

std::string u16_value(uint16_t value) { return Bytes().add<uint32_t>(kU16).add(value).str(); }
std::string u32_value(uint32_t value) { return Bytes().add<uint32_t>(kU32).add(value).str(); }
std::string f32_value(float value) { return Bytes().add<uint32_t>(kF32Value).add(value).str(); }
std::string bool_value(bool value) { return Bytes().add<uint32_t>(kBool).add<uint8_t>(value).str(); }
std::string string_value(std::string_view text) { return Bytes().add<uint32_t>(kString).string(text).str(); }
std::string ints_value(const std::vector<int32_t>& values) { return array_value(kI32, values); }
std::string floats_value(const std::vector<float>& values) { return array_value(kF32Value, values); }
std::string bools_value(const std::vector<bool>& values) {
  return array_value(kBool, std::vector<uint8_t>(values.begin(), values.end()));
}
std::string strings_value(const std::vector<std::string>& values) {
  Bytes bytes;
  bytes.add<uint32_t>(kArray).add<uint32_t>(kString).add<uint64_t>(values.size());
  for (const std::string& value : values) bytes.string(value);
  return bytes.str();
}

void Gguf::set(const std::string& key, const std::string& value) {
  const auto found = std::ranges::find(entries, key, [](const auto& entry) { return entry.first; });
  if (found != entries.end()) {
    found->second = value;
  } else {
    entries.emplace_back(key, value);
  }
}

void Gguf::erase(const std::string& key) {
  std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
}

GgufTensor& Gguf::tensor(const std::string& name) { return *std::ranges::find(tensors, name, &GgufTensor::name); }

void Gguf::add_f32(const std::string& name, const std::vector<uint64_t>& dims) {
  size_t count = 1;
  for (const uint64_t size : dims) count *= static_cast<size_t>(size);
  tensors.push_back({.name = name, .dims = dims, .type = 0, .data = f32_bytes(count)});
}

std::string Gguf::header() const {
  Bytes bytes;
  bytes.text(magic).add(version);
  bytes.add(tensor_count >= 0 ? static_cast<uint64_t>(tensor_count) : tensors.size());
  bytes.add(entry_count >= 0 ? static_cast<uint64_t>(entry_count) : entries.size());
  for (const auto& [key, value] : entries) bytes.string(key).text(value);
  uint64_t next = 0;
  for (const GgufTensor& each : tensors) {
    bytes.string(each.name).add(static_cast<uint32_t>(each.dims.size()));
    for (const uint64_t size : each.dims) bytes.add(size);
    bytes.add(each.type).add(each.offset >= 0 ? static_cast<uint64_t>(each.offset) : next);
    next = (next + each.data.size() + alignment - 1) / alignment * alignment;
  }
  std::string out = bytes.str();
  if (!tensors.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
  return out;
}

std::string Gguf::bytes() const {
  std::string out = header();
  const size_t data_begin = out.size();
  for (const GgufTensor& each : tensors) {
    out.resize(data_begin + (out.size() - data_begin + alignment - 1) / alignment * alignment);
    out += each.data;
  }
  return out;
}

Gguf small_llama_gguf() {
  Gguf gguf;
  gguf.set("general.architecture", string_value("llama"));
  gguf.set("general.name", string_value("small"));
  gguf.set("llama.block_count", u32_value(1));
  gguf.set("llama.context_length", u32_value(64));
  gguf.set("llama.embedding_length", u32_value(8));
  gguf.set("llama.feed_forward_length", u32_value(16));
  gguf.set("llama.attention.head_count", u32_value(2));
  gguf.set("llama.attention.head_count_kv", u32_value(1));
  gguf.set("llama.attention.layer_norm_rms_epsilon", f32_value(1e-5f));
  gguf.set("tokenizer.ggml.tokens", strings_value({"<s>", "</s>", "a", "b", "c", "d", "e", "f"}));
  gguf.set("tokenizer.ggml.token_type", ints_value({3, 3, 1, 1, 1, 1, 1, 1}));
  gguf.set("tokenizer.ggml.scores", floats_value({0, 0, -1, -2, -3, -4, -5, -6}));
  gguf.set("tokenizer.ggml.eos_token_id", u32_value(1));
  gguf.add_f32("token_embd.weight", {8, 8});
  gguf.add_f32("output_norm.weight", {8});
  gguf.add_f32("output.weight", {8, 8});
  gguf.add_f32("blk.0.attn_norm.weight", {8});
  gguf.add_f32("blk.0.attn_q.weight", {8, 8});
  gguf.add_f32("blk.0.attn_k.weight", {8, 4});
  gguf.add_f32("blk.0.attn_v.weight", {8, 4});
  gguf.add_f32("blk.0.attn_output.weight", {8, 8});
  gguf.add_f32("blk.0.ffn_norm.weight", {8});
  gguf.add_f32("blk.0.ffn_gate.weight", {8, 16});
  gguf.add_f32("blk.0.ffn_up.weight", {8, 16});
  gguf.add_f32("blk.0.ffn_down.weight", {16, 8});
  return gguf;
}

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return Bytes().string(header).text(data).str();
}

std::string safetensors_bytes(const std::map<std::string, SafetensorsItem>& tensors) {
  std::string header = "{", data;
  for (const auto& [name, item] : tensors) {
    const size_t begin = data.size();
    data += item.data;
    if (header.size() > 1) header += ",";
    header += "\"" + name + "\":{\"dtype\":\"" + item.dtype + "\",\"shape\":" + shape_text(item.shape) +
              ",\"data_offsets\":" +
              shape_text(std::vector<int64_t>{static_cast<int64_t>(begin), static_cast<int64_t>(data.size())}) + "}";
  }
  return safetensors_bytes(header + "}", data);
}

std::string small_llama_config() {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 8, "hidden_size": 8,
"intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
"max_position_embeddings": 64, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "eos_token_id": 1, "hidden_act": "silu"})";
}

std::map<std::string, SafetensorsItem> small_llama_tensors() {
  const auto f32 = [](std::vector<int64_t> shape) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    return SafetensorsItem{"F32", std::move(shape), f32_bytes(count)};
  };
  return {{"model.embed_tokens.weight", f32({8, 8})},
          {"model.norm.weight", f32({8})},
          {"lm_head.weight", f32({8, 8})},
          {"model.layers.0.input_layernorm.weight", f32({8})},
          {"model.layers.0.self_attn.q_proj.weight", f32({8, 8})},
          {"model.layers.0.self_attn.k_proj.weight", f32({4, 8})},
          {"model.layers.0.self_attn.v_proj.weight", f32({4, 8})},
          {"model.layers.0.self_attn.o_proj.weight", f32({8, 8})},
          {"model.layers.0.post_attention_layernorm.weight", f32({8})},
          {"model.layers.0.mlp.gate_proj.weight", f32({16, 8})},
          {"model.layers.0.mlp.up_proj.weight", f32({16, 8})},
          {"model.layers.0.mlp.down_proj.weight", f32({8, 16})}};
}

}  // namespace quire::testing_files
