#include "capacity/model_setup.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/machine.h"

namespace quire {
namespace {

constexpr int kMaxThreads = 1024;

// Upper end of what Tokenizer::memory_bytes reports per entry, on vocabularies of 49,152 to 262,144 tokens.
constexpr int64_t kTokenizerBytesPerToken = 48;

// The number behind `name` in a file of lines "NAME NUMBER kB"; 0 where there is none.
int64_t read_kib(const char* path, std::string_view name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with(name)) return std::strtoll(line.c_str() + name.size(), nullptr, 10);
  }
  return 0;
}

std::optional<KvType> kv_type(KvDtype dtype) {
  switch (dtype) {
    case KvDtype::kAuto:
      return std::nullopt;
    case KvDtype::kBf16:
      return KvType::kBF16;
    case KvDtype::kF16:
      return KvType::kF16;
    case KvDtype::kInt8:
      return KvType::kI8;
    case KvDtype::kF32:
      return KvType::kF32;
  }
  return std::nullopt;
}

Result<CpuDeviceOptions> device_options(const ModelOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return invalid_argument("--threads " + std::to_string(options.threads) + ": give 1 to " +
                            std::to_string(kMaxThreads) + ", or 0 for the cores this process may use");
  }
  CpuDeviceOptions device;
  switch (options.isa) {
    case Isa::kAuto:
      device.isa = CpuDeviceOptions::Isa::kAuto;
      break;
    case Isa::kScalar:
      device.isa = CpuDeviceOptions::Isa::kScalar;
      break;
    case Isa::kAvx2:
      device.isa = CpuDeviceOptions::Isa::kAvx2;
      break;
    case Isa::kAvx512:
      device.isa = CpuDeviceOptions::Isa::kAvx512;
      break;
  }
  device.threads = options.threads == 0 ? usable_cores() : options.threads;
  device.adapt_threads = options.adapt_threads;
  switch (options.attention) {
    case Attention::kFlash:
      device.attention = AttentionMethod::kFlash;
      break;
    case Attention::kPerHead:
      device.attention = AttentionMethod::kPerHead;
      break;
    case Attention::kFullScores:
      device.attention = AttentionMethod::kFullScores;
      break;
  }
  device.power_of_two_scales = options.power_of_two_scales;
  device.f32 = options.compute == ComputeMode::kF32;
  device.kv = kv_type(options.kv_dtype);
  return device;
}

}  // namespace

Result<std::unique_ptr<DeviceSizes>> make_device_sizes(const ModelOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const CpuDeviceOptions device, device_options(options));
  return make_cpu_device_sizes(device);
}

Result<std::unique_ptr<Device>> make_device(const ModelOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const CpuDeviceOptions device, device_options(options));
  return make_cpu_device(device);
}

WeightOptions weight_options(const ModelOptions& options) {
  WeightOptions weights{.head = options.head, .packed_file = ""};
  if (!options.pack_cache.empty()) {
    const std::filesystem::path folder(options.pack_cache);
    weights.packed_file = folder / (model_name_of(options.model_path) + ".packed");
  }
  return weights;
}

std::string model_name_of(const std::string& path) {
  std::filesystem::path file(path);
  if (!file.has_filename()) file = file.parent_path();
  return file.extension() == ".gguf" ? file.stem().string() : file.filename().string();
}

int64_t step_rows(int64_t context) { return std::min<int64_t>(512, context); }

int64_t pages_per_sequence(const KvGroup& group, int64_t context) {
  int64_t tokens = context;
  // The tokens a step writes, the window before them, and the page that the oldest of these shares with older ones.
  if (group.window > 0) tokens = std::min(tokens, group.window + step_rows(context) + kPageTokens);
  return (tokens + kPageTokens - 1) / kPageTokens;
}

KvCacheConfig kv_cache_config(const ModelConfig& config, const std::vector<int64_t>& pages, int64_t context) {
  KvCacheConfig cache;
  for (size_t g = 0; g < config.kv_groups.size(); ++g) {
    const KvGroup& group = config.kv_groups[g];
    cache.groups.push_back({.pages = pages[g], .window = group.window, .layers = group.layers});
  }
  cache.page_tokens = kPageTokens;
  cache.max_sequence_tokens = context;
  return cache;
}

int64_t tokenizer_bytes(int64_t vocab_size) { return vocab_size * kTokenizerBytesPerToken; }

int64_t anonymous_memory_bytes() { return read_kib("/proc/self/status", "RssAnon:") * 1024; }

}  // namespace quire
