// A checkpoint: named tensors, hyper-parameters and the metadata a tokenizer is built from, over GGUF files or a
// Hugging Face directory. Weights stay in the mapped files; nothing here copies them.
//
// Tensor names are canonical, whatever the format: GGUF's short names ("token_embd.weight", "output.weight",
// "output_norm.weight", "rope_freqs.weight", "blk.3.attn_q.weight", "blk.3.attn_q.bias", "blk.3.attn_k.*",
// "blk.3.attn_v.*", "blk.3.attn_output.*", "blk.3.attn_norm.weight", "blk.3.attn_q_norm.weight",
// "blk.3.attn_k_norm.weight", "blk.3.post_attention_norm.weight", "blk.3.ffn_norm.weight", "blk.3.ffn_gate.*",
// "blk.3.ffn_up.*", "blk.3.ffn_down.*", "blk.3.post_ffw_norm.weight").
//
// What formats do differently is undone here and nowhere else: GGUF stores the Q and K rows of `llama` for
// interleaved rope (TensorRef::row maps back to rotate-half order), Hugging Face stores Gemma's norms as w of
// (1 + w) (TensorRef::decode_f32 adds the one).
//
// Thread: immutable after open, readable from any thread. Files that others truncate or overwrite in the meantime give
// wrong values, and no error, so whoever has read tensors asks unchanged() before anything is made of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "formats/hparams.h"
#include "formats/quantized_linear.h"
#include "tensor/weight_type.h"

namespace quire {

struct TensorRef {
  std::string name;  // canonical
  DType dtype = DType::kF32;
  int rank = 0;
  std::array<int64_t, 4> shape{};   // outermost first; shape[rank - 1] is contiguous. [out, in] for a linear
  const std::byte* data = nullptr;  // row-major, inside the mapped file; may be unaligned
  int64_t bytes = 0;
  int64_t interleaved_head_dim = 0;  // > 0: rows of each head are stored as rope pairs (2i, 2i+1)
  bool add_one = false;              // stored value is w of (1 + w)
  // A matrix in tensors of its own, with codes and scales: then dtype, data and row() mean nothing.
  std::shared_ptr<const QuantizedLinear> quantized;

  int64_t rows() const;  // product of all dimensions but the last; 1 for a vector
  int64_t columns() const { return shape[static_cast<size_t>(rank - 1)]; }
  WeightType type() const { return quantized != nullptr ? quantized->type() : WeightType(dtype); }
  std::string type_name() const;  // for people: "Q4_K", "GPTQ 4-bit, groups of 128, symmetric"
  // First byte of canonical row `r`. A permuted vector (a bias) has one row, in stored order: use decode_f32.
  const std::byte* row(int64_t r) const;
  // Decodes canonical rows [first, first + n) to n * columns() floats, elements of a permuted vector reordered too.
  void decode_f32(int64_t first, int64_t n, float* out) const;
};

// Whether two matrices of the file hold the same numbers, whatever their types; quantized ones never do.
bool same_matrix(const TensorRef& a, const TensorRef& b);

// A GGUF metadata value. Integers of every width are widened; arrays keep one element type.
using MetaValue = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
                               std::vector<uint64_t>, std::vector<double>, std::vector<std::string>>;

// How much of a checkpoint to read. kVocabulary is what tokenizers and templates need and works for architectures
// whose weights quire cannot run: tensors() is empty, and of hparams() only architecture, name, vocab_size (0: not
// stated) and eos_token_ids are set.
enum class CheckpointParts { kAll, kVocabulary };

// What quire itself keeps in the files it writes; other programs ignore it. GGUF: the metadata keys "quire.proof" (a
// string, padded with spaces) and "quire.k_factors" (f32 array). A directory: the keys "proof" and "k_factors" of
// "quire.json".
struct CheckpointNotes {
  std::string proof;             // JSON, what quantization cost (docs/quantization.md); empty: none
  std::vector<float> k_factors;  // of int8 KV, [layers][kv_heads][head_dim] (device/device.h, QkvArgs); empty: none
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // `path` is a .gguf file (for a split model: any of its parts), a directory with config.json, or one that holds a
  // single GGUF model. Reads headers only. Fails with the file and field at fault; never allocates more than the file's size could justify.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& path,
                                                  CheckpointParts parts = CheckpointParts::kAll);

  const Hparams& hparams() const { return hparams_; }
  std::span<const TensorRef> tensors() const { return tensors_; }  // those the model uses, in file order
  // Names, as the file spells them, of tensors the family has no use for (rotary tables, a vision tower, a head
  // beside tied embeddings). For `inspect`.
  std::span<const std::string> unused_tensors() const { return unused_tensors_; }
  const TensorRef* find(std::string_view canonical_name) const;  // null: absent

  // What a person should hear of how these files are read: keys that contradict each other and which of them is used,
  // keys without effect here, what is filled in. Each names its file. Empty for an ordinary checkpoint.
  std::span<const std::string> remarks() const { return remarks_; }

  const CheckpointNotes& notes() const { return notes_; }

  const std::string& path() const { return path_; }
  int64_t file_bytes() const { return file_bytes_; }
  std::span<const std::string> files() const { return files_; }  // paths of those that hold tensors
  virtual std::string_view format() const = 0;                   // "GGUF v3" or "safetensors"

  // Whether files() still are what they were when they were opened (MappedFile::unchanged); the message names the one at
  // fault. A system call a file.
  Status unchanged() const;
  // What tells these files from others, and from what they were before somebody changed them: a line for each, with name,
  // size and time of the last change.
  std::string file_versions() const;

  // GGUF only: the value of a metadata key; null when absent, or for other formats.
  virtual const MetaValue* meta(std::string_view key) const = 0;
  // Hugging Face only: the bytes of "config.json", "tokenizer.json", "tokenizer_config.json", "added_tokens.json",
  // "generation_config.json", "chat_template.jinja", "special_tokens_map.json", "tokenizer.model", "vocab.json",
  // "merges.txt"; null when absent, or for GGUF.
  virtual const std::string* document(std::string_view file_name) const = 0;

 protected:
  // Takes the tensors and makes them findable; names must be distinct.
  void set_tensors(std::vector<TensorRef> tensors);
  // Counts a file that holds tensors, which must stay where it is.
  void add_file(const MappedFile& file);

  Hparams hparams_;
  std::vector<TensorRef> tensors_;
  std::vector<std::string> unused_tensors_;
  std::vector<std::string> remarks_;
  CheckpointNotes notes_;
  std::string path_;
  int64_t file_bytes_ = 0;  // of all parts together
  std::vector<std::string> files_;

 private:
  std::vector<const MappedFile*> mapped_;                       // files_
  std::unordered_map<std::string_view, size_t> index_by_name_;  // keys point into tensors_
};

}  // namespace quire
