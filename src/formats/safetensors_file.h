// One safetensors file: its JSON header, checked as strictly as the reference reader does.
// Format: the README and safetensors/src/tensor.rs of huggingface/safetensors. Knows nothing of models.
//
// Thread: immutable after open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"

namespace quire {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;           // "BF16", "I32", ...; always one of the format's
  std::vector<int64_t> shape;  // outermost first; empty for a scalar
  const std::byte* data = nullptr;
  int64_t bytes = 0;
};

struct SafetensorsFile {
  MappedFile file;
  std::vector<SafetensorsEntry> tensors;  // by their place in the file

  // Messages name the path and the tensor at fault.
  static Result<SafetensorsFile> open(const std::string& path);
};

}  // namespace quire
