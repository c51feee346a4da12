#include "cli/model_source.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "cli/catalogue.h"
#include "cli/interrupt.h"
#include "cli/pull.h"
#include "cli/terminal.h"

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
    return not_found("the catalogue has no \"" + name + "\"; it has: " + catalogue_names());
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
  if (const CatalogueEntry* entry = find_in_catalogue(options.model)) {
    QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(options));
    return is_pulled(*entry, folder) ? pulled_path(*entry, folder) : std::string();
  }
  std::error_code error;
  return std::filesystem::exists(options.model, error) ? options.model : std::string();
}

Result<std::string> find_model(const Options& options) {
  if (const CatalogueEntry* entry = find_in_catalogue(options.model)) {
    QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(options));
    if (is_pulled(*entry, folder)) return pulled_path(*entry, folder);
    std::fprintf(stderr, "fetching %s (%s, %s) into %s\n", options.model.c_str(), bytes_text(entry->bytes).c_str(),
                 std::string(entry->licence).c_str(), folder.c_str());
    return pull_with_progress(options, options.model);
  }
  std::error_code error;
  if (!std::filesystem::exists(options.model, error)) {
    return not_found(options.model + ": no such file or directory, and no name of the catalogue (which has: " +
                     catalogue_names() + ")");
  }
  return options.model;
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
