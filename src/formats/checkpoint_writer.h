// Writes a model in another format: every tensor of a checkpoint, quantized or as plain values, with the configuration and
// the tokenizer that programs expect beside it.
//
// Tensors have canonical names and rows (formats/checkpoint.h); what formats do differently (interleaved rope rows, norms
// less one) is redone here. They may come in any order, one at a time: space for all of them is set aside first, in a
// partial file that takes its final name when everything is in it. A full disk is an error, never half a file.
//
// Thread: one caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "tensor/dtype.h"

namespace quire {

// A linear as integer codes: w[n][k] = scale * (code - zero) with the scale and zero point of the column's group.
struct QuantizedMatrix {
  int bits = 4;  // 4 or 8
  int64_t n = 0;
  int64_t k = 0;
  int64_t group = 0;              // columns that share a scale; k: the whole row
  std::vector<uint8_t> codes;     // [n][k], columns in the model's order
  std::vector<float> scales;      // [n][groups], each an f16 value
  std::vector<uint8_t> zeros;     // [n][groups]; 2^(bits - 1) everywhere when symmetric
  std::vector<int32_t> group_of;  // [k], the group of each column; empty: k / group
};

struct CheckpointTarget {
  enum class Format : uint8_t {
    kGguf,               // one file; quantized linears are blocks of a GGUF type
    kSafetensors,        // a directory of plain values
    kGptq,               // a directory, GPTQ's second version (zero points as they are)
    kAwq,                // a directory, AWQ's gemm layout, 4 bits
    kCompressedTensors,  // a directory, pack-quantized
  };

  Format format = Format::kGguf;
  std::string scheme{};  // "rtn", "gptq" or "awq": recorded, changes no layout
  int bits = 4;
  int64_t group = 0;  // columns that share a scale; 0: the whole row
  bool symmetric = true;
  bool act_order = false;  // group_of is given
  double damp = 0;         // recorded with gptq
  // What each tensor is written as: of a GGUF file its type, of a directory the type of a tensor that is not quantized.
  std::function<DType(const TensorRef&)> dtype = nullptr;
  // Which tensors a quantized directory holds as codes, of the linears of layers; null: all of these.
  std::function<bool(const TensorRef&)> quantized = nullptr;
  int64_t k_factors = 0;  // room for so many in the notes
  // The tokenizer where the source has it in the other format: files of a directory by name, or keys of a GGUF file.
  std::map<std::string, std::string> documents = {};
  std::unordered_map<std::string, MetaValue> tokenizer = {};
};

class CheckpointWriter {
 public:
  // Checks that the format can hold what is asked for, naming the tensor that does not fit, plans every tensor and sets the
  // space aside beside `path`: a file for kGguf, else a directory. Neither may exist, but for an empty directory. `source`
  // must outlive the writer. A writer that is not finished leaves nothing behind.
  static Result<std::unique_ptr<CheckpointWriter>> create(const Checkpoint& source, const CheckpointTarget& target,
                                                          const std::string& path);
  virtual ~CheckpointWriter() = default;

  // Each tensor of the source is written once, in any order, by one of these three; sizes must be the tensor's.
  // A tensor as plain values in canonical order; encoded as target.dtype says, vectors of a GGUF file as F32.
  virtual Status write_values(std::string_view name, std::span<const float> values) = 0;
  // A linear as codes; not for kGguf.
  virtual Status write_codes(std::string_view name, const QuantizedMatrix& matrix) = 0;
  // Rows of a linear as blocks of its GGUF type, canonical order; only for kGguf.
  virtual Status write_blocks(std::string_view name, std::span<const std::byte> rows) = 0;

  // Every tensor has been written: adds the notes, puts everything on the disk and under its final name.
  virtual Status finish(const CheckpointNotes& notes) = 0;
};

}  // namespace quire
