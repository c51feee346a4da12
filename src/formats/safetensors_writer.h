// Writes one safetensors file: the header is planned from all tensors, then each is written to its place, in any order.
// Format: the README and safetensors/src/tensor.rs of huggingface/safetensors. Tensors lie in falling order of their element's
// size, which aligns each without holes, and begin at a multiple of 8 bytes.
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
#include "formats/partial_file.h"

namespace quire {

struct SafetensorsPlan {
  std::string name;
  std::string dtype;           // as the format names it: "BF16", "I32"
  std::vector<int64_t> shape;  // outermost first
};

class SafetensorsWriter {
 public:
  // Names must be distinct and dtypes those of the format that quire writes.
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<SafetensorsPlan> tensors);

  // Bytes [offset, offset + bytes) of a planned tensor.
  Status write(std::string_view name, uint64_t offset, std::span<const std::byte> bytes);
  Status finish();

 private:
  struct Place {
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
  };

  SafetensorsWriter(PartialFile file, std::map<std::string, Place, std::less<>> places)
      : file_(std::move(file)), places_(std::move(places)) {}

  PartialFile file_;
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace quire
