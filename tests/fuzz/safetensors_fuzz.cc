// Any bytes as a safetensors file: an error, or tensors that lie within the file.
#include <cstdlib>

#include "formats/safetensors_file.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const quire::MemoryFile memory(bytes, size);
  if (!memory.valid()) return 0;
  const auto file = quire::SafetensorsFile::open(memory.path());
  if (!file.ok()) return 0;
  const auto all = file->file.bytes();
  for (const quire::SafetensorsEntry& tensor : file->tensors) {
    const bool inside =
        tensor.bytes >= 0 && tensor.data >= all.data() && tensor.data + tensor.bytes <= all.data() + all.size();
    if (!inside) std::abort();
  }
  return 0;
}
