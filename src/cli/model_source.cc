#include "cli/model_source.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/suggestion.h"
#include "cli/terminal.h"
#include "hub/catalogue.h"
#include "hub/local_models.h"
#include "hub/pull.h"

namespace quire {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

ComputeMode compute_mode(const std::string& name) { return name == "f32" ? ComputeMode::kF32 : ComputeMode::kDefault; }

KvDtype kv_dtype(const std::string& name) {
  if (name == "bf16") return KvDtype::kBf16;
  if (name == "f16") return KvDtype::kF16;
  if (name == "int8") return KvDtype::kInt8;
  return name == "f32" ? KvDtype::kF32 : KvDtype::kAuto;
}

Attention attention(const std::string& name) {
  if (name == "per-head") return Attention::kPerHead;
  return name == "full" ? Attention::kFullScores : Attention::kFlash;
}

std::optional<DType> head(const std::string& name) {
  if (name == "q8_0") return DType::kQ8_0;
  return name == "q6_k" ? std::optional(DType::kQ6_K) : std::nullopt;
}

Isa isa(const std::string& name) {
  if (name == "scalar") return Isa::kScalar;
  if (name == "avx2") return Isa::kAvx2;
  return name == "avx512" ? Isa::kAvx512 : Isa::kAuto;
}

// Where the model is, on this machine; empty: nowhere. A path goes before a name in the cache folder.
std::string local_path(const std::string& model, const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(model, error)) return model;
  const std::optional<LocalModel> found = find_local(folder, model);
  return found ? found->path : std::string();
}

}  // namespace

Result<std::string> model_folder(const Options& options) {
  std::string cache = options.cache;
  if (cache.empty()) {
    const std::string base = environment("XDG_CACHE_HOME");
    const std::string home = environment("HOME");
    if (base.empty() && home.empty()) {
      return invalid_argument("no folder to keep models in: HOME is not set; name one with --cache");
    }
    cache = base.empty() ? home + "/.cache/quire" : base + "/quire";
  }
  return cache + "/models";
}

Result<std::string> pull_with_progress(const Options& options, const std::string& name) {
  const CatalogueEntry* entry = find_in_catalogue(name);
  if (entry == nullptr) {
    std::vector<std::string_view> names;
    for (const CatalogueEntry& one : catalogue()) names.push_back(one.name);
    return not_found("the catalogue has no \"" + name + "\"" + did_you_mean(name, names) +
                     " (it has: " + catalogue_names() + ")");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(options));
  InterruptScope interrupt;
  ProgressLine line;
  QUIRE_RETURN_IF_ERROR(
      pull_model(*entry, folder,
                 {.progress = [&](std::string_view phase, double fraction) { line.show(phase, fraction); },
                  .cancelled = [&] { return interrupt.interrupted(); }}));
  return pulled_path(*entry, folder);
}

void note_remarks(const Checkpoint& checkpoint, const Tokenizer* tokenizer) {
  for (const std::string& remark : checkpoint.remarks()) note("note: " + remark);
  if (tokenizer == nullptr) return;
  for (const std::string& remark : tokenizer->remarks()) note("note: " + remark);
}

Result<std::string> find_local_model(const Options& options) {
  const Result<std::string> folder = model_folder(options);
  if (const CatalogueEntry* entry = find_in_catalogue(options.model)) {
    QUIRE_RETURN_IF_ERROR(folder.status());
    return is_pulled(*entry, *folder) ? pulled_path(*entry, *folder) : std::string();
  }
  return local_path(options.model, folder.ok() ? *folder : std::string());
}

Result<std::string> find_model(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(std::string path, find_local_model(options));
  if (!path.empty()) return path;
  const CatalogueEntry* entry = find_in_catalogue(options.model);
  if (entry == nullptr) return unknown_model(options.model, options);
  QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(options));
  std::fprintf(stderr, "fetching %s (%s, %s) into %s\n", options.model.c_str(), bytes_text(entry->bytes).c_str(),
               std::string(entry->licence).c_str(), folder.c_str());
  return pull_with_progress(options, options.model);
}

std::vector<std::string> model_names(const Options& options) {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) names.emplace_back(entry.name);
  const Result<std::string> folder = model_folder(options);
  if (!folder.ok()) return names;
  for (LocalModel& model : local_models(*folder)) {
    if (find_in_catalogue(model.name) == nullptr) names.push_back(std::move(model.name));
  }
  return names;
}

Status unknown_model(const std::string& name, const Options& options) {
  const std::vector<std::string> names = model_names(options);
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string all;
  for (const std::string& one : names) all.append(all.empty() ? "" : ", ").append(one);
  return not_found(name + ": no such file or directory, and no name of a model" + did_you_mean(name, known) +
                   " (names: " + all + ")");
}

ModelOptions model_options(const Options& options, std::string path) {
  return {.model_path = std::move(path),
          .compute = compute_mode(options.compute),
          .kv_dtype = kv_dtype(options.kv_dtype),
          .k_factors = options.k_factors == "on",
          .isa = isa(options.isa),
          .threads = static_cast<int>(options.threads),
          .adapt_threads = options.adapt_threads == "on",
          .attention = attention(options.attention),
          .power_of_two_scales = options.activation_scales == "power-of-two",
          .head = head(options.head),
          .pack_cache = options.pack_cache,
          .context = options.context,
          .record = options.record};
}

}  // namespace quire
