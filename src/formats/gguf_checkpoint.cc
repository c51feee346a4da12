#include "formats/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/messages.h"
#include "formats/checkpoint_notes.h"
#include "formats/families.h"
#include "formats/gguf_file.h"
#include "formats/gguf_hparams.h"
#include "formats/gguf_metadata.h"
#include "formats/hparams_check.h"
#include "formats/tensor_schema.h"

namespace quire {
namespace {

constexpr int64_t kMaxParts = 99999;  // five digits

std::string part_suffix(int64_t index, int64_t count) {
  char text[32];
  std::snprintf(text, sizeof text, "-%05d-of-%05d.gguf", static_cast<int>(index + 1), static_cast<int>(count));
  return text;
}

// Opens every part of a split model. One that is not split is the single element.
Result<std::vector<GgufFile>> open_parts(const std::string& path, CheckpointParts wanted) {
  const bool with_tensors = wanted == CheckpointParts::kAll;
  std::vector<GgufFile> parts;
  QUIRE_ASSIGN_OR_RETURN(GgufFile named, GgufFile::open(path, with_tensors));
  const GgufMetadataView metadata(named.metadata, path);
  QUIRE_ASSIGN_OR_RETURN(const auto count, metadata.find_int("split.count", 0, kMaxParts));
  if (count.value_or(0) <= 1) {
    parts.push_back(std::move(named));
    return parts;
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t index, metadata.require_int("split.no", 0, *count - 1));
  const std::string suffix = part_suffix(index, *count);
  if (!path.ends_with(suffix)) {
    return invalid_argument(path + ": is part " + std::to_string(index + 1) + " of " + std::to_string(*count) +
                            " of a split model, so its name must end in \"" + suffix + "\" for the others to be found");
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  const int64_t needed = with_tensors ? *count : 1;
  for (int64_t i = 0; i < needed; ++i) {
    const std::string part_path = stem + part_suffix(i, *count);
    QUIRE_ASSIGN_OR_RETURN(GgufFile part, GgufFile::open(part_path, with_tensors));
    const GgufMetadataView part_metadata(part.metadata, part_path);
    QUIRE_ASSIGN_OR_RETURN(const int64_t part_count, part_metadata.require_int("split.count", 1, kMaxParts));
    QUIRE_ASSIGN_OR_RETURN(const int64_t part_index, part_metadata.require_int("split.no", 0, kMaxParts));
    if (part_count != *count || part_index != i) {
      return corrupt(part_path + ": says it is part " + std::to_string(part_index + 1) + " of " +
                     std::to_string(part_count) + ", which is not what its name says");
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

class GgufCheckpoint final : public Checkpoint {
 public:
  static Result<std::unique_ptr<Checkpoint>> create(const std::string& path, std::vector<GgufFile> parts,
                                                    CheckpointParts wanted) {
    auto checkpoint = std::make_unique<GgufCheckpoint>();
    checkpoint->path_ = path;
    checkpoint->parts_ = std::move(parts);
    for (const GgufFile& part : checkpoint->parts_) checkpoint->add_file(part.file);
    if (wanted == CheckpointParts::kAll) {
      const Status loaded = checkpoint->load();
      QUIRE_RETURN_IF_ERROR(checkpoint->unchanged());
      QUIRE_RETURN_IF_ERROR(loaded);
    } else {
      QUIRE_ASSIGN_OR_RETURN(checkpoint->hparams_, read_gguf_vocabulary_hparams(checkpoint->metadata()));
    }
    return std::unique_ptr<Checkpoint>(std::move(checkpoint));
  }

  std::string_view format() const override { return parts_.front().version == 2 ? "GGUF v2" : "GGUF v3"; }
  const MetaValue* meta(std::string_view key) const override { return metadata().find(key); }
  const std::string* document(std::string_view) const override { return nullptr; }

 private:
  // Model metadata is in the first part.
  GgufMetadataView metadata() const { return {parts_.front().metadata, parts_.front().file.path()}; }

  Status load() {
    const GgufMetadataView meta = metadata();
    QUIRE_ASSIGN_OR_RETURN(const auto type, meta.find_string("general.type"));
    if (type && *type != "model") {
      return unsupported(meta.path() + ": holds " + quote(*type) + " (general.type), not a model");
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string architecture, meta.require_string("general.architecture"));
    const Family* family = family_by_name(architecture);
    if (family == nullptr) {
      return unsupported(meta.path() + ": has the unknown architecture " + quote(architecture) +
                         " (general.architecture); supported are " + supported_architectures());
    }
    QUIRE_ASSIGN_OR_RETURN(hparams_, read_gguf_hparams(meta, *family));
    QUIRE_ASSIGN_OR_RETURN(std::vector<TensorRef> found, collect_tensors());
    const auto named = [&](std::string_view name) { return std::ranges::find(found, name, &TensorRef::name); };
    hparams_.tied_embeddings = named("output.weight") == found.end();
    if (hparams_.vocab_size == 0) {
      const auto embedding = named("token_embd.weight");
      if (embedding != found.end()) hparams_.vocab_size = embedding->rows();
    }
    QUIRE_RETURN_IF_ERROR(check_hparams(hparams_, meta.path()));
    const auto spelling = [](const std::string& name) { return name; };
    QUIRE_ASSIGN_OR_RETURN(SchemaTensors tensors, match_schema(hparams_, *family, family->gguf_biases, std::move(found),
                                                               {meta.path(), spelling}));
    if (family->gguf_interleaved_qk) {
      for (TensorRef& tensor : tensors.used) {
        if (tensor.name.find(".attn_q.") != std::string::npos || tensor.name.find(".attn_k.") != std::string::npos) {
          tensor.interleaved_head_dim = hparams_.head_dim;
        }
      }
    }
    unused_tensors_ = std::move(tensors.unused);
    set_tensors(std::move(tensors.used));
    QUIRE_RETURN_IF_ERROR(check_rope_factors());
    note_sampling_keys();
    return read_notes();
  }

  // The ways of sampling that quire has nothing like, unless the file turns them off.
  void note_sampling_keys() {
    constexpr std::string_view kPrefix = "general.sampling.";
    constexpr std::string_view kRead[] = {"temp", "top_k", "top_p", "min_p", "penalty_repeat"};
    constexpr std::string_view kDetails[] = {"mirostat_tau", "mirostat_eta", "xtc_threshold", "sequence"};
    const bool penalizes = hparams_.default_repetition_penalty.value_or(1.0f) != 1.0f;
    for (const GgufStoredEntry& entry : parts_.front().entries) {
      if (!entry.key.starts_with(kPrefix)) continue;
      const std::string_view name = std::string_view(entry.key).substr(kPrefix.size());
      if (std::ranges::find(kRead, name) != std::end(kRead)) continue;
      if (std::ranges::find(kDetails, name) != std::end(kDetails)) continue;
      const MetaValue* value = meta(entry.key);
      const bool off = *value == MetaValue(uint64_t{0}) || *value == MetaValue(int64_t{0}) || *value == MetaValue(0.0);
      if (off || (name == "penalty_last_n" && !penalizes)) continue;
      remarks_.push_back(
          path_ + ": metadata key " + quote(entry.key) + " is not obeyed: " +
          (name == "penalty_last_n" ? "the repetition penalty counts the whole text" : "quire has nothing like it"));
    }
  }

  Status read_notes() {
    const GgufMetadataView meta = metadata();
    QUIRE_ASSIGN_OR_RETURN(const auto proof, meta.find_string(kProofKey));
    QUIRE_ASSIGN_OR_RETURN(notes_.proof,
                           read_proof(proof.value_or(""), meta.path() + ": metadata key " + quote(kProofKey)));
    const MetaValue* factors = meta.find(kKFactorsKey);
    if (factors == nullptr) return {};
    const auto* values = std::get_if<std::vector<double>>(factors);
    if (values == nullptr) return meta.error(kKFactorsKey, "is not an array of floats");
    QUIRE_ASSIGN_OR_RETURN(notes_.k_factors,
                           read_k_factors(*values, hparams_, meta.path() + ": metadata key " + quote(kKFactorsKey)));
    return {};
  }

  // Frequencies are divided by them.
  Status check_rope_factors() const {
    const TensorRef* tensor = find("rope_freqs.weight");
    if (tensor == nullptr) return {};
    std::vector<float> factors(static_cast<size_t>(tensor->columns()));
    tensor->decode_f32(0, 1, factors.data());
    if (std::ranges::all_of(factors, [](float factor) { return std::isfinite(factor) && factor > 0.0f; })) return {};
    return corrupt(path_ + ": tensor \"rope_freqs.weight\" holds something other than positive numbers");
  }

  Result<std::vector<TensorRef>> collect_tensors() {
    std::vector<TensorRef> found;
    for (GgufFile& part : parts_) {
      std::ranges::move(part.tensors, std::back_inserter(found));
      part.tensors.clear();
    }
    if (parts_.size() > 1) {
      QUIRE_ASSIGN_OR_RETURN(const auto total, metadata().find_int("split.tensors.count", 0, INT32_MAX));
      if (total && *total != static_cast<int64_t>(found.size())) {
        return corrupt(path_ + ": the parts hold " + std::to_string(found.size()) + " tensors, but " +
                       "split.tensors.count is " + std::to_string(*total));
      }
    }
    return found;
  }

  std::vector<GgufFile> parts_;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_gguf_checkpoint(const std::string& path, CheckpointParts parts) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<GgufFile> files, open_parts(path, parts));
  return GgufCheckpoint::create(path, std::move(files), parts);
}

}  // namespace quire
