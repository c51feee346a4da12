// Any text as config.json, as generation_config.json, and as a shard index.
#include <string>

#include "formats/hf_config.h"
#include "formats/safetensors_index.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  (void)quire::read_hf_config({.directory = "fuzz", .config = &text});
  (void)quire::read_hf_vocabulary_hparams({.directory = "fuzz", .generation_config = &text});
  (void)quire::parse_safetensors_index(text, "fuzz");
  return 0;
}
