#include "formats/gguf_checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/messages.h"
#include "formats/checkpoint_notes.h"
#include "formats/families.h"
#include "formats/gguf_file.h"
#include "formats/gguf_hparams_writer.h"
#include "formats/gguf_writer.h"
#include "formats/llama3_rope.h"
#include "formats/tensor_rows.h"

namespace quire {
namespace {

constexpr uint64_t kQuantizationVersion = 2;  // of ggml's block layouts
constexpr std::string_view kRopeFactors = "rope_freqs.weight";

// general.file_type of a file whose linears are mostly of this type (llama.cpp's llama_ftype; of K types the "M" mixture).
uint64_t file_type(DType dtype) {
  constexpr std::array<std::pair<DType, uint64_t>, kDTypeCount> kFileTypes = {{{DType::kF32, 0},
                                                                               {DType::kF16, 1},
                                                                               {DType::kBF16, 32},
                                                                               {DType::kQ4_0, 2},
                                                                               {DType::kQ4_1, 3},
                                                                               {DType::kQ5_0, 8},
                                                                               {DType::kQ5_1, 9},
                                                                               {DType::kQ8_0, 7},
                                                                               {DType::kQ2_K, 10},
                                                                               {DType::kQ3_K, 12},
                                                                               {DType::kQ4_K, 15},
                                                                               {DType::kQ5_K, 17},
                                                                               {DType::kQ6_K, 18},
                                                                               {DType::kIQ4_NL, 25},
                                                                               {DType::kIQ4_XS, 30},
                                                                               {DType::kMXFP4, 38}}};
  const auto* found = std::ranges::find(kFileTypes, dtype, [](const auto& each) { return each.first; });
  QUIRE_CHECK(found != kFileTypes.end());
  return found->second;
}

// Keys that speak of the source's file or of how its weights were quantized.
bool is_of_the_source(std::string_view key) {
  constexpr std::string_view kKeys[] = {"general.file_type", "general.quantization_version", "general.alignment"};
  return std::ranges::find(kKeys, key) != std::end(kKeys) || key.starts_with("split.") || key.starts_with("quire.") ||
         key.starts_with("quantize.imatrix.");
}

std::string padded_proof(const std::string& proof) { return proof + std::string(kProofRoom - proof.size(), ' '); }

class GgufCheckpointWriter final : public CheckpointWriter {
 public:
  GgufCheckpointWriter(const Checkpoint& source, const CheckpointTarget& target) : source_(source), target_(target) {}

  Status open(const std::string& path) {
    path_ = path;
    QUIRE_RETURN_IF_ERROR(plan_tensors());
    QUIRE_ASSIGN_OR_RETURN(const std::vector<GgufEntry> metadata, make_metadata());
    QUIRE_ASSIGN_OR_RETURN(GgufWriter file, GgufWriter::create(path, metadata, plans_));
    file_.emplace(std::move(file));
    return write_rope_factors();
  }

  Status write_values(std::string_view name, std::span<const float> values) override {
    return store_values(take(name), values, sink_of(name));
  }

  Status write_codes(std::string_view name, const QuantizedMatrix&) override {
    return invalid_argument(path_ + ": tensor " + quote(name) + " cannot be written as codes: GGUF holds blocks");
  }

  Status write_blocks(std::string_view name, std::span<const std::byte> rows) override {
    return store_blocks(take(name), rows, sink_of(name));
  }

  Status finish(const CheckpointNotes& notes) override {
    QUIRE_CHECK(missing_.empty());
    QUIRE_RETURN_IF_ERROR(check_notes(notes, source_.hparams(), path_));
    if (notes.proof.size() > kProofRoom) {
      return out_of_range(path_ + ": the notes have " + std::to_string(notes.proof.size()) +
                          " bytes; a GGUF file has " + "room for " + std::to_string(kProofRoom));
    }
    QUIRE_RETURN_IF_ERROR(file_->rewrite(kProofKey, encode_gguf_value(padded_proof(notes.proof))));
    if (!notes.k_factors.empty()) {
      QUIRE_CHECK(static_cast<int64_t>(notes.k_factors.size()) == target_.k_factors);
      const std::vector<double> factors(notes.k_factors.begin(), notes.k_factors.end());
      QUIRE_RETURN_IF_ERROR(file_->rewrite(kKFactorsKey, encode_gguf_value(factors)));
    }
    return file_->finish();
  }

 private:
  Status plan_tensors() {
    const Family* family = family_by_name(source_.hparams().architecture);
    QUIRE_CHECK(family != nullptr);
    const bool computed_factors = source_.hparams().rope.scaling == RopeScaling::kLlama3;
    if (computed_factors) {
      const std::string name(kRopeFactors);
      plan(name, {.where = path_ + ": tensor " + quote(name), .rows = 1, .columns = source_.hparams().rope_dim / 2}, 1);
    }
    for (const TensorRef& tensor : source_.tensors()) {
      const bool permuted = family->gguf_interleaved_qk && (tensor.name.find(".attn_q.") != std::string::npos ||
                                                            tensor.name.find(".attn_k.") != std::string::npos);
      StoredTensor stored{
          .where = path_ + ": tensor " + quote(tensor.name), .rows = tensor.rows(), .columns = tensor.columns()};
      stored.dtype = tensor.rank == 1 ? DType::kF32 : target_.dtype(tensor);  // readers want vectors as F32
      stored.interleaved_head_dim = permuted ? source_.hparams().head_dim : 0;
      const DTypeInfo& info = dtype_info(stored.dtype);
      if (stored.columns % info.block_elements != 0) {
        return unsupported(stored.where + " has rows of " + std::to_string(stored.columns) + " weights, which " +
                           std::string(info.name) + " cannot hold: it has blocks of " +
                           std::to_string(info.block_elements));
      }
      if (tensor.rank > 1 && tensor.name.starts_with("blk.")) bytes_of_[stored.dtype] += stored.bytes();
      plan(tensor.name, stored, tensor.rank);
    }
    return {};
  }

  void plan(const std::string& name, const StoredTensor& stored, int rank) {
    GgufTensorPlan tensor{.name = name, .shape = {stored.columns}, .dtype = stored.dtype};
    if (rank > 1) tensor.shape.insert(tensor.shape.begin(), stored.rows);
    plans_.push_back(std::move(tensor));
    missing_.insert(name);
    tensors_.emplace(name, stored);
  }

  DType commonest() const {
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::ranges::max_element(bytes_of_, fewer)->first;
  }

  Result<std::vector<GgufEntry>> make_metadata() const {
    QUIRE_ASSIGN_OR_RETURN(std::vector<GgufEntry> entries,
                           source_.document("config.json") != nullptr ? from_hparams() : from_source());
    const auto set = [&](std::string_view key, const MetaValue& value) {
      entries.push_back({std::string(key), encode_gguf_value(value)});
    };
    set("general.file_type", file_type(commonest()));
    set("general.quantization_version", kQuantizationVersion);
    if (!target_.scheme.empty()) set("quire.scheme", target_.scheme);
    set(kProofKey, padded_proof(""));
    if (target_.k_factors > 0) set(kKFactorsKey, std::vector<double>(static_cast<size_t>(target_.k_factors)));
    return entries;
  }

  Result<std::vector<GgufEntry>> from_source() const {
    QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(source_.files().front(), /*with_tensors=*/false));
    std::vector<GgufEntry> entries;
    for (const auto& [key, value] : file.entries) {
      if (!is_of_the_source(key)) entries.push_back({std::string(key), std::string(value)});
    }
    QUIRE_RETURN_IF_ERROR(file.file.unchanged());
    return entries;
  }

  Result<std::vector<GgufEntry>> from_hparams() const {
    QUIRE_ASSIGN_OR_RETURN(const GgufKeyValues values, gguf_hparam_entries(source_.hparams(), source_.path()));
    std::vector<GgufEntry> entries;
    for (const auto& [key, value] : values) entries.push_back({key, encode_gguf_value(value)});
    const std::map<std::string, MetaValue> tokenizer(target_.tokenizer.begin(), target_.tokenizer.end());
    for (const auto& [key, value] : tokenizer) entries.push_back({key, encode_gguf_value(value)});
    return entries;
  }

  // What a directory states as numbers is a tensor in GGUF.
  Status write_rope_factors() {
    if (source_.hparams().rope.scaling != RopeScaling::kLlama3) return {};
    return write_values(kRopeFactors, llama3_factors(source_.hparams().rope, source_.hparams().rope_dim));
  }

  const StoredTensor& take(std::string_view name) {
    const auto found = missing_.find(name);
    QUIRE_CHECK(found != missing_.end());
    missing_.erase(found);
    return tensors_.find(name)->second;
  }

  BytesSink sink_of(std::string_view name) {
    return
        [this, name](uint64_t offset, std::span<const std::byte> bytes) { return file_->write(name, offset, bytes); };
  }

  const Checkpoint& source_;
  const CheckpointTarget target_;
  std::string path_;
  std::vector<GgufTensorPlan> plans_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<DType, int64_t> bytes_of_;  // of linears of layers
  std::set<std::string, std::less<>> missing_;
  std::optional<GgufWriter> file_;
};

}  // namespace

Result<std::unique_ptr<CheckpointWriter>> create_gguf_checkpoint(const Checkpoint& source,
                                                                 const CheckpointTarget& target,
                                                                 const std::string& path) {
  auto writer = std::make_unique<GgufCheckpointWriter>(source, target);
  QUIRE_RETURN_IF_ERROR(writer->open(path));
  return std::unique_ptr<CheckpointWriter>(std::move(writer));
}

}  // namespace quire
