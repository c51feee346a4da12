#include "support/random_checkpoint.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "tensor/half.h"

namespace quire {
namespace {

constexpr uint32_t kHidden = 256;
constexpr uint32_t kFfn = 512;
constexpr uint32_t kVocab = 64;
constexpr uint32_t kLayers = 2;
constexpr uint32_t kHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint64_t kAlignment = 32;

class GgufWriter {
 public:
  void put(const void* data, size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  template <typename T>
  void number(T value) {
    put(&value, sizeof value);
  }
  void text(const std::string& value) {
    number<uint64_t>(value.size());
    put(value.data(), value.size());
  }
  void key_u32(const std::string& key, uint32_t value) {
    text(key);
    number<uint32_t>(4);
    number(value);
    ++keys_;
  }
  void key_f32(const std::string& key, float value) {
    text(key);
    number<uint32_t>(6);
    number(value);
    ++keys_;
  }
  void key_text(const std::string& key, const std::string& value) {
    text(key);
    number<uint32_t>(8);
    text(value);
    ++keys_;
  }
  void key_texts(const std::string& key, const std::vector<std::string>& values) {
    text(key);
    number<uint32_t>(9);
    number<uint32_t>(8);
    number<uint64_t>(values.size());
    for (const std::string& value : values) text(value);
    ++keys_;
  }
  void pad() { bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment); }
  uint64_t keys() const { return keys_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  uint64_t keys_ = 0;
};

struct Tensor {
  std::string name;
  DType dtype;
  std::vector<uint64_t> dims;  // contiguous first
  std::string data;
};

void put_f16(std::string& block, size_t at, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(block.data() + at, &bits, sizeof bits);
}

// A block of random quants whose scales keep weights near `size`.
std::string random_block(DType dtype, float size, std::mt19937_64& random) {
  const DTypeInfo& info = dtype_info(dtype);
  std::string block(static_cast<size_t>(info.block_bytes), '\0');
  for (char& byte : block) byte = static_cast<char>(random());
  std::uniform_real_distribution<float> spread(0.5f, 1.5f);
  const float s = size * spread(random);
  switch (dtype) {
    case DType::kF32: {
      const float value = s * std::normal_distribution<float>()(random);
      std::memcpy(block.data(), &value, sizeof value);
      break;
    }
    case DType::kF16:
      put_f16(block, 0, s * std::normal_distribution<float>()(random));
      break;
    case DType::kBF16: {
      const uint16_t bits = f32_to_bf16(s * std::normal_distribution<float>()(random));
      std::memcpy(block.data(), &bits, sizeof bits);
      break;
    }
    case DType::kQ4_0:
      put_f16(block, 0, s / 5);
      break;
    case DType::kQ4_1:
      put_f16(block, 0, s / 5), put_f16(block, 2, -1.5f * s);
      break;
    case DType::kQ5_0:
      put_f16(block, 0, s / 10);
      break;
    case DType::kQ5_1:
      put_f16(block, 0, s / 10), put_f16(block, 2, -1.5f * s);
      break;
    case DType::kQ8_0:
      put_f16(block, 0, s / 70);
      break;
    case DType::kQ2_K:
      put_f16(block, 80, s / 12), put_f16(block, 82, s / 8);
      break;
    case DType::kQ3_K:
      put_f16(block, 108, s / 40);
      break;
    case DType::kQ4_K:
    case DType::kQ5_K:
      put_f16(block, 0, s / 300), put_f16(block, 2, s / 40);
      break;
    case DType::kQ6_K:
      put_f16(block, 208, s / 1200);
      break;
    case DType::kIQ4_NL:
      put_f16(block, 0, s / 60);
      break;
    case DType::kIQ4_XS:
      put_f16(block, 0, s / 1200);
      break;
    case DType::kMXFP4:
      block[0] = static_cast<char>(122 + random() % 2);
      break;
  }
  return block;
}

Tensor matrix(const std::string& name, DType dtype, uint64_t n, uint64_t k, std::mt19937_64& random) {
  Tensor tensor{.name = name, .dtype = dtype, .dims = {k, n}, .data = {}};
  const uint64_t blocks = n * k / static_cast<uint64_t>(dtype_info(dtype).block_elements);
  const float size = 1.0f / std::sqrt(static_cast<float>(k));
  for (uint64_t i = 0; i < blocks; ++i) tensor.data += random_block(dtype, size, random);
  return tensor;
}

Tensor norm(const std::string& name, std::mt19937_64& random) {
  Tensor tensor{.name = name, .dtype = DType::kF32, .dims = {kHidden}, .data = {}};
  std::uniform_real_distribution<float> around(0.8f, 1.2f);
  for (uint32_t i = 0; i < kHidden; ++i) {
    const float value = around(random);
    tensor.data.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return tensor;
}

std::vector<Tensor> tensors_of(DType dtype, std::mt19937_64& random) {
  const uint64_t kv = kHidden / kHeads * kKvHeads;
  std::vector<Tensor> tensors;
  tensors.push_back(matrix("token_embd.weight", DType::kF32, kVocab, kHidden, random));
  for (uint32_t i = 0; i < kLayers; ++i) {
    const std::string prefix = "blk." + std::to_string(i) + ".";
    tensors.push_back(norm(prefix + "attn_norm.weight", random));
    tensors.push_back(matrix(prefix + "attn_q.weight", dtype, kHidden, kHidden, random));
    tensors.push_back(matrix(prefix + "attn_k.weight", dtype, kv, kHidden, random));
    tensors.push_back(matrix(prefix + "attn_v.weight", dtype, kv, kHidden, random));
    tensors.push_back(matrix(prefix + "attn_output.weight", dtype, kHidden, kHidden, random));
    tensors.push_back(norm(prefix + "ffn_norm.weight", random));
    tensors.push_back(matrix(prefix + "ffn_gate.weight", dtype, kFfn, kHidden, random));
    tensors.push_back(matrix(prefix + "ffn_up.weight", dtype, kFfn, kHidden, random));
    tensors.push_back(matrix(prefix + "ffn_down.weight", dtype, kHidden, kFfn, random));
  }
  tensors.push_back(norm("output_norm.weight", random));
  tensors.push_back(matrix("output.weight", dtype, kVocab, kHidden, random));
  return tensors;
}

}  // namespace

void write_random_checkpoint(const std::string& path, DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<Tensor> tensors = tensors_of(dtype, random);
  GgufWriter keys;
  keys.key_text("general.architecture", "llama");
  keys.key_u32("llama.block_count", kLayers);
  keys.key_u32("llama.context_length", 4096);
  keys.key_u32("llama.embedding_length", kHidden);
  keys.key_u32("llama.feed_forward_length", kFfn);
  keys.key_u32("llama.attention.head_count", kHeads);
  keys.key_u32("llama.attention.head_count_kv", kKvHeads);
  keys.key_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  keys.key_text("tokenizer.ggml.model", "gpt2");
  keys.key_text("tokenizer.ggml.pre", "gpt-2");
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < kVocab; ++i) tokens.push_back("t" + std::to_string(i));
  keys.key_texts("tokenizer.ggml.tokens", tokens);

  GgufWriter file;
  file.put("GGUF", 4);
  file.number<uint32_t>(3);
  file.number<uint64_t>(tensors.size());
  file.number<uint64_t>(keys.keys());
  file.put(keys.bytes().data(), keys.bytes().size());
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    file.text(tensor.name);
    file.number<uint32_t>(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) file.number(dim);
    file.number<uint32_t>(static_cast<uint32_t>(dtype_info(tensor.dtype).ggml_type));
    file.number(offset);
    offset += (tensor.data.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  file.pad();
  for (const Tensor& tensor : tensors) {
    file.put(tensor.data.data(), tensor.data.size());
    file.pad();
  }
  std::ofstream(path, std::ios::binary).write(file.bytes().data(), static_cast<std::streamsize>(file.bytes().size()));
}

}  // namespace quire
