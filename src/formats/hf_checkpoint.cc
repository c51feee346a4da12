#include "formats/hf_checkpoint.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/messages.h"
#include "formats/checkpoint_notes.h"
#include "formats/hf_config.h"
#include "formats/hf_names.h"
#include "formats/hf_quantization.h"
#include "formats/hf_weights.h"
#include "formats/tensor_schema.h"
#include "formats/text_file.h"

namespace quire {
namespace {

struct Document {
  std::string_view name;
  size_t max_bytes;
};
constexpr std::array<Document, 13> kDocuments = {{{"config.json", size_t{4} << 20},
                                                  {"generation_config.json", size_t{1} << 20},
                                                  {"quantize_config.json", size_t{4} << 20},
                                                  {"quant_config.json", size_t{4} << 20},
                                                  {"tokenizer.json", size_t{256} << 20},
                                                  {"tokenizer_config.json", size_t{16} << 20},
                                                  {"special_tokens_map.json", size_t{4} << 20},
                                                  {"added_tokens.json", size_t{16} << 20},
                                                  {"tokenizer.model", size_t{16} << 20},
                                                  {"vocab.json", size_t{64} << 20},
                                                  {"merges.txt", size_t{64} << 20},
                                                  {"chat_template.jinja", size_t{4} << 20},
                                                  {kNotesFile, size_t{16} << 20}}};

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

Result<DType> to_dtype(const SafetensorsEntry& entry, const std::string& path) {
  if (entry.dtype == "F32") return DType::kF32;
  if (entry.dtype == "F16") return DType::kF16;
  if (entry.dtype == "BF16") return DType::kBF16;
  return unsupported(path + ": tensor " + quote(entry.name) + " has type " + entry.dtype +
                     ", which quire cannot read (F32, F16, BF16)");
}

class HfCheckpoint final : public Checkpoint {
 public:
  static Result<std::unique_ptr<Checkpoint>> create(const std::string& directory, CheckpointParts wanted) {
    auto checkpoint = std::make_unique<HfCheckpoint>();
    checkpoint->path_ = directory;
    QUIRE_RETURN_IF_ERROR(checkpoint->read_documents());
    if (wanted == CheckpointParts::kAll) {
      const Status loaded = checkpoint->load();
      QUIRE_RETURN_IF_ERROR(checkpoint->unchanged());
      QUIRE_RETURN_IF_ERROR(loaded);
    } else {
      QUIRE_ASSIGN_OR_RETURN(checkpoint->hparams_, read_hf_vocabulary_hparams(checkpoint->config_texts()));
    }
    return std::unique_ptr<Checkpoint>(std::move(checkpoint));
  }

  std::string_view format() const override { return "safetensors"; }
  const MetaValue* meta(std::string_view) const override { return nullptr; }
  const std::string* document(std::string_view file_name) const override {
    const auto found = documents_.find(file_name);
    return found != documents_.end() ? &found->second : nullptr;
  }

 private:
  Status read_documents() {
    for (const Document& each : kDocuments) {
      const std::string path = path_ + "/" + std::string(each.name);
      if (!exists(path)) continue;
      QUIRE_ASSIGN_OR_RETURN(std::string text, read_text_file(path, each.max_bytes));
      documents_.emplace(each.name, std::move(text));
    }
    return {};
  }

  HfConfigTexts config_texts() const {
    return {
        .directory = path_, .config = document("config.json"), .generation_config = document("generation_config.json")};
  }

  Status load() {
    QUIRE_ASSIGN_OR_RETURN(HfModelConfig model, read_hf_config(config_texts()));
    const Family& family = *model.family;
    hparams_ = std::move(model.hparams);
    remarks_ = std::move(model.remarks);
    QUIRE_ASSIGN_OR_RETURN(parts_, open_hf_weights(path_, &remarks_));
    std::vector<TensorRef> found;
    for (const SafetensorsFile& file : parts_) {
      add_file(file.file);
      for (const SafetensorsEntry& entry : file.tensors) QUIRE_RETURN_IF_ERROR(add_tensor(file, entry, family, &found));
    }
    QUIRE_RETURN_IF_ERROR(add_quantized(family, &found));
    if (found.empty()) {
      return invalid_argument(parts_.front().file.path() + ": holds no tensors of a model, and " + path_ +
                              " has no other weights that are read (model.safetensors, or one with an index)");
    }
    resolve_head(family, &found);
    const auto spelling = [&](const std::string& name) { return hf_from_canonical(name, family); };
    QUIRE_ASSIGN_OR_RETURN(SchemaTensors tensors,
                           match_schema(hparams_, family, model.biases, std::move(found), {path_, spelling}));
    for (std::string& name : tensors.unused) unused_tensors_.push_back(hf_from_canonical(name, family));
    set_tensors(std::move(tensors.used));
    return read_notes();
  }

  Status read_notes() {
    const std::string* text = document(kNotesFile);
    if (text == nullptr) return {};
    QUIRE_ASSIGN_OR_RETURN(notes_, parse_notes_file(*text, hparams_, path_ + "/" + std::string(kNotesFile)));
    return {};
  }

  // A stored head beside tied embeddings is the model's own, whatever the flag says, unless it is the embedding again.
  void resolve_head(const Family& family, std::vector<TensorRef>* found) {
    if (!hparams_.tied_embeddings) return;
    const auto head = std::ranges::find(*found, "output.weight", &TensorRef::name);
    const auto embedding = std::ranges::find(*found, "token_embd.weight", &TensorRef::name);
    if (head == found->end() || embedding == found->end()) return;
    const std::string name = hf_from_canonical(head->name, family);
    if (same_matrix(*head, *embedding)) {
      unused_tensors_.push_back(name);
      found->erase(head);
      return;
    }
    hparams_.tied_embeddings = false;
    remarks_.push_back(path_ + ": tie_word_embeddings says that the embedding is the head too, but tensor " +
                       quote(name) + " is stored and differs; the stored head is used");
  }

  // The tensors of one quantized module.
  struct QuantizedModule {
    QuantizedParts parts;
    std::string path;  // of the file that holds the first
  };

  // Keeps `entry` for its module where it is a part of a quantized one.
  Result<bool> take_part(const SafetensorsFile& file, const SafetensorsEntry& entry, const Family& family) {
    const size_t dot = entry.name.rfind('.');
    if (dot == std::string::npos) return false;
    const std::string module = entry.name.substr(0, dot);
    const std::string part = entry.name.substr(dot + 1);
    const std::string name = canonical_from_hf(module + ".weight", family);
    if (!is_quantized_part(part, entry.dtype) || name.empty() || name.ends_with("norm.weight")) return false;
    QuantizedModule& to = modules_[module];
    if (to.parts.empty()) to.path = file.file.path();
    if (!to.parts.emplace(part, &entry).second) {
      return corrupt(file.file.path() + ": tensor " + quote(entry.name) + " occurs twice");
    }
    return true;
  }

  Status add_quantized(const Family& family, std::vector<TensorRef>* found) {
    const std::string* beside = document("quantize_config.json");
    QUIRE_ASSIGN_OR_RETURN(
        const auto settings,
        HfQuantization::read({.directory = path_,
                              .config = document("config.json"),
                              .quantize_config = beside != nullptr ? beside : document("quant_config.json")}));
    if (settings) remarks_.insert(remarks_.end(), settings->remarks().begin(), settings->remarks().end());
    bool without_order = false;
    for (const auto& [module, stored] : modules_) {
      const std::string first = module + "." + stored.parts.begin()->first;
      if (!settings) {
        return corrupt(stored.path + ": tensor " + quote(first) + " belongs to a quantized model, but " + path_ +
                       "/config.json has no quantization_config that says how; take the model's own config.json");
      }
      QUIRE_ASSIGN_OR_RETURN(const auto scheme, settings->scheme_of(module));
      if (!scheme) {
        return corrupt(stored.path + ": tensor " + quote(first) + " is quantized, but " + settings->where() +
                       " says that its module is not");
      }
      without_order = without_order || (settings->desc_act() && scheme->group > 0 && !stored.parts.contains("g_idx"));
      TensorRef tensor;
      tensor.name = canonical_from_hf(module + ".weight", family);
      QUIRE_ASSIGN_OR_RETURN(tensor.quantized,
                             QuantizedLinear::create(*scheme, stored.parts, stored.path + ": module " + quote(module)));
      tensor.rank = 2;
      tensor.shape = {tensor.quantized->rows(), tensor.quantized->columns()};
      tensor.bytes = tensor.quantized->bytes();
      if (tensor.name == "token_embd.weight") {
        return unsupported(stored.path + ": tensor " + quote(first) +
                           " quantizes the embedding, which quire cannot read");
      }
      found->push_back(std::move(tensor));
    }
    if (without_order) {
      remarks_.push_back(settings->where() +
                         ": desc_act is true, but modules have no g_idx to say which group a column " +
                         "belongs to; the groups are taken in the order of the columns");
    }
    return {};
  }

  Status add_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry, const Family& family,
                    std::vector<TensorRef>* found) {
    QUIRE_ASSIGN_OR_RETURN(const bool taken, take_part(file, entry, family));
    if (taken) return {};
    TensorRef tensor;
    tensor.name = canonical_from_hf(entry.name, family);
    if (tensor.name.empty()) {
      unused_tensors_.push_back(entry.name);
      return {};
    }
    QUIRE_ASSIGN_OR_RETURN(tensor.dtype, to_dtype(entry, file.file.path()));
    if (entry.shape.empty() || entry.shape.size() > tensor.shape.size()) {
      return corrupt(file.file.path() + ": tensor " + quote(entry.name) + " has " + std::to_string(entry.shape.size()) +
                     " dimensions");
    }
    tensor.rank = static_cast<int>(entry.shape.size());
    std::ranges::copy(entry.shape, tensor.shape.begin());
    tensor.data = entry.data;
    tensor.bytes = entry.bytes;
    tensor.add_one = family.hf_norms_add_one && tensor.name.ends_with("norm.weight");
    found->push_back(std::move(tensor));
    return {};
  }

  std::map<std::string, std::string, std::less<>> documents_;
  std::vector<SafetensorsFile> parts_;
  std::map<std::string, QuantizedModule> modules_;
};

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_hf_checkpoint(const std::string& directory, CheckpointParts parts) {
  return HfCheckpoint::create(directory, parts);
}

}  // namespace quire
