#include "formats/hf_checkpoint_writer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mapped_file.h"
#include "base/messages.h"
#include "formats/checkpoint_notes.h"
#include "formats/families.h"
#include "formats/hf_config_writer.h"
#include "formats/hf_names.h"
#include "formats/hf_quantization_config.h"
#include "formats/partial_directory.h"
#include "formats/partial_file.h"
#include "formats/quantized_packing.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_rows.h"

namespace quire {
namespace {

using Format = CheckpointTarget::Format;

// What a directory may hold beside weights and configuration, for this and other programs.
constexpr std::string_view kTokenizerFiles[] = {"tokenizer.json",    "tokenizer_config.json", "special_tokens_map.json",
                                                "added_tokens.json", "tokenizer.model",       "vocab.json",
                                                "merges.txt",        "chat_template.jinja"};

const std::string kGenerationConfig = "generation_config.json";

std::string element_type(DType dtype) { return dtype == DType::kBF16 ? "BF16" : dtype == DType::kF16 ? "F16" : "F32"; }

bool is_layer_linear(const TensorRef& tensor) { return tensor.rank == 2 && tensor.name.starts_with("blk."); }

class HfCheckpointWriter final : public CheckpointWriter {
 public:
  HfCheckpointWriter(const Checkpoint& source, const CheckpointTarget& target, PartialDirectory directory)
      : source_(source), target_(target), directory_(std::move(directory)) {}

  Status open(const std::string& path) {
    path_ = path;
    family_ = family_by_name(source_.hparams().architecture);
    QUIRE_CHECK(family_ != nullptr);
    for (const TensorRef& tensor : source_.tensors()) QUIRE_RETURN_IF_ERROR(plan(tensor));
    QUIRE_RETURN_IF_ERROR(write_documents());
    QUIRE_ASSIGN_OR_RETURN(SafetensorsWriter file,
                           SafetensorsWriter::create(directory_.file("model.safetensors"), std::move(plans_)));
    file_.emplace(std::move(file));
    return {};
  }

  Status write_values(std::string_view name, std::span<const float> values) override {
    const std::string& stored_name = take(name);
    if (stored_name.empty()) return {};
    const auto found = plain_.find(name);
    QUIRE_CHECK(found != plain_.end());
    return store_values(found->second, values, sink_of(stored_name));
  }

  Status write_codes(std::string_view name, const QuantizedMatrix& matrix) override {
    const std::string module = module_of(take(name));
    const auto found = quantized_.find(name);
    QUIRE_CHECK(found != quantized_.end());
    const bool same_shape = matrix.n == found->second.n && matrix.k == found->second.k;
    const Status checked = same_shape ? check_matrix(target_, matrix) : corrupt("is given in another shape");
    if (!checked.ok()) return Status(checked.code(), path_ + ": tensor " + quote(name) + " " + checked.message());
    for (const std::string& part : found->second.parts) {
      QUIRE_RETURN_IF_ERROR(file_->write(module + "." + part, 0, pack_part(target_, part, matrix)));
    }
    return {};
  }

  Status write_blocks(std::string_view name, std::span<const std::byte>) override {
    return invalid_argument(path_ + ": tensor " + quote(name) + " cannot be written as blocks: safetensors has none");
  }

  Status finish(const CheckpointNotes& notes) override {
    QUIRE_CHECK(missing_.empty());
    QUIRE_RETURN_IF_ERROR(check_notes(notes, source_.hparams(), path_));
    QUIRE_RETURN_IF_ERROR(file_->finish());
    QUIRE_RETURN_IF_ERROR(
        write_text_file(directory_.file(std::string(kNotesFile)), notes_file_text(notes, target_.scheme)));
    return directory_.finish();
  }

 private:
  struct QuantizedPlan {
    int64_t n = 0;
    int64_t k = 0;
    std::vector<std::string> parts;
  };

  static std::string module_of(const std::string& stored_name) { return stored_name.substr(0, stored_name.rfind('.')); }

  bool is_quantized(const TensorRef& tensor) const {
    if (target_.format == Format::kSafetensors) return false;
    return target_.quantized ? target_.quantized(tensor) : is_layer_linear(tensor);
  }

  Status plan(const TensorRef& tensor) {
    missing_.insert(tensor.name);
    // Hugging Face states these as numbers in config.json.
    if (tensor.name == "rope_freqs.weight") {
      stored_names_[tensor.name];
      return {};
    }
    const std::string name = hf_from_canonical(tensor.name, *family_);
    stored_names_[tensor.name] = name;
    if (is_quantized(tensor)) return plan_codes(tensor, module_of(name));
    if (is_layer_linear(tensor)) skipped_.push_back(module_of(name));
    StoredTensor stored{.where = path_ + ": tensor " + quote(name), .rows = tensor.rows(), .columns = tensor.columns()};
    stored.dtype = target_.dtype(tensor);
    stored.less_one = family_->hf_norms_add_one && tensor.name.ends_with("norm.weight");
    if (stored.dtype != DType::kF32 && stored.dtype != DType::kF16 && stored.dtype != DType::kBF16) {
      return unsupported(path_ + ": tensor " + quote(name) + " cannot be written as " +
                         std::string(dtype_info(stored.dtype).name) + ": a directory holds BF16, F16 and F32");
    }
    plans_.push_back({name, element_type(stored.dtype), {tensor.shape.begin(), tensor.shape.begin() + tensor.rank}});
    plain_.emplace(tensor.name, stored);
    return {};
  }

  Status plan_codes(const TensorRef& tensor, const std::string& module) {
    if (!is_layer_linear(tensor)) {
      return unsupported(path_ + ": tensor " + quote(module + ".weight") +
                         " cannot be quantized in a directory: only the linears of layers can");
    }
    QuantizedPlan planned{.n = tensor.rows(), .k = tensor.columns(), .parts = {}};
    auto parts = packed_parts(target_, planned.n, planned.k);
    if (!parts.ok()) {
      return Status(parts.status().code(),
                    path_ + ": tensor " + quote(module + ".weight") + " " + parts.status().message());
    }
    for (PackedPart& part : *parts) {
      plans_.push_back({module + "." + part.name, part.dtype, part.shape});
      planned.parts.push_back(std::move(part.name));
    }
    quantized_.emplace(tensor.name, std::move(planned));
    return {};
  }

  // Before the weights, so that a model no configuration describes is refused before hours of work.
  Status write_documents() const {
    const TensorRef* embedding = source_.find("token_embd.weight");
    QUIRE_CHECK(embedding != nullptr);
    const bool plain = target_.format == Format::kSafetensors;
    QUIRE_ASSIGN_OR_RETURN(
        const std::string config,
        hf_config_text(source_, target_.dtype(*embedding), plain ? "" : quantization_config_text(target_, skipped_)));
    QUIRE_RETURN_IF_ERROR(write_text_file(directory_.file("config.json"), config));
    const std::string generation = hf_generation_config_text(source_);
    if (!generation.empty()) {
      QUIRE_RETURN_IF_ERROR(write_text_file(directory_.file(kGenerationConfig), generation));
    }
    if (source_.document("config.json") != nullptr) return copy_tokenizer();
    for (const auto& [name, text] : target_.documents) {
      if (name != kGenerationConfig) QUIRE_RETURN_IF_ERROR(write_text_file(directory_.file(name), text));
    }
    return {};
  }

  Status copy_tokenizer() const {
    for (const std::string_view name : kTokenizerFiles) {
      const std::string from = source_.path() + "/" + std::string(name);
      std::error_code error;
      if (!std::filesystem::exists(from, error)) continue;
      QUIRE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(from));
      const auto bytes = file.bytes();
      const Status written = write_text_file(directory_.file(std::string(name)),
                                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      QUIRE_RETURN_IF_ERROR(file.unchanged());
      QUIRE_RETURN_IF_ERROR(written);
    }
    return {};
  }

  // The name in the file; empty: this format has no such tensor.
  const std::string& take(std::string_view name) {
    const auto found = missing_.find(name);
    QUIRE_CHECK(found != missing_.end());
    missing_.erase(found);
    return stored_names_.find(name)->second;
  }

  BytesSink sink_of(const std::string& name) {
    return
        [this, &name](uint64_t offset, std::span<const std::byte> bytes) { return file_->write(name, offset, bytes); };
  }

  const Checkpoint& source_;
  const CheckpointTarget target_;
  PartialDirectory directory_;
  std::string path_;
  const Family* family_ = nullptr;
  std::vector<SafetensorsPlan> plans_;
  std::map<std::string, std::string, std::less<>> stored_names_;  // by canonical name
  std::map<std::string, StoredTensor, std::less<>> plain_;
  std::map<std::string, QuantizedPlan, std::less<>> quantized_;
  std::vector<std::string> skipped_;  // modules of linears that stay plain
  std::set<std::string, std::less<>> missing_;
  std::optional<SafetensorsWriter> file_;
};

}  // namespace

Result<std::unique_ptr<CheckpointWriter>> create_hf_checkpoint(const Checkpoint& source, const CheckpointTarget& target,
                                                               const std::string& directory) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory partial, PartialDirectory::create(directory));
  auto writer = std::make_unique<HfCheckpointWriter>(source, target, std::move(partial));
  QUIRE_RETURN_IF_ERROR(writer->open(directory));
  return std::unique_ptr<CheckpointWriter>(std::move(writer));
}

}  // namespace quire
