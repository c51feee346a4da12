// Writes one GGUF file, version 3: the metadata and the tensor table at once, then the tensors, in any order.
// Format: ggml's docs/gguf.md. Knows nothing of models; gguf_checkpoint_writer.h does.
//
// Owner: the checkpoint writer; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/partial_file.h"
#include "tensor/dtype.h"

namespace quire {

// A metadata entry as the file holds it.
struct GgufEntry {
  std::string key;
  std::string value;  // the type's id, then the value
};

// `value` in the types that readers insist on: integers of 32 bits where the number fits (an array: where all fit), f32,
// bool, string.
std::string encode_gguf_value(const MetaValue& value);

struct GgufTensorPlan {
  std::string name;
  std::vector<int64_t> shape;  // outermost first
  DType dtype = DType::kF32;
};

class GgufWriter {
 public:
  // Keys and names must be distinct; columns must be multiples of the type's block. Alignment is the default, 32.
  static Result<GgufWriter> create(const std::string& path, std::span<const GgufEntry> metadata,
                                   std::span<const GgufTensorPlan> tensors);

  // Bytes [offset, offset + bytes) of a planned tensor.
  Status write(std::string_view name, uint64_t offset, std::span<const std::byte> bytes);
  // Replaces the value of a key that was planned, by one of the same size.
  Status rewrite(std::string_view key, const std::string& value);
  Status finish();

 private:
  struct Place {
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
  };
  using Places = std::map<std::string, Place, std::less<>>;

  GgufWriter(PartialFile file, Places values, Places tensors)
      : file_(std::move(file)), values_(std::move(values)), tensors_(std::move(tensors)) {}

  PartialFile file_;
  Places values_;
  Places tensors_;
};

}  // namespace quire
