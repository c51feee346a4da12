// One GGUF file: header, metadata and tensor table, read with every bound checked. Versions 2 and 3.
// Format: ggml's docs/gguf.md. Knows nothing of models; gguf_checkpoint.h does.
//
// Thread: immutable after open.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "formats/checkpoint.h"

namespace quire {

using GgufMetadata = std::unordered_map<std::string, MetaValue>;

// A metadata entry as the file stores it; both lie in the mapped file.
struct GgufStoredEntry {
  std::string_view key;
  std::string_view value;  // the type's id, then the value
};

struct GgufFile {
  MappedFile file;
  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<GgufStoredEntry> entries;  // the same metadata, in file order
  std::vector<TensorRef> tensors;        // in file order, names and bytes as stored; empty unless asked for

  // Messages name the path and the key, tensor or byte at fault.
  static Result<GgufFile> open(const std::string& path, bool with_tensors);
};

}  // namespace quire
