// Any text as config.json and its quantization settings, as generation_config.json, and as a shard index.
#include <string>

#include "formats/hf_config.h"
#include "formats/hf_quantization.h"
#include "formats/safetensors_index.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  (void)quire::read_hf_config({.directory = "fuzz", .config = &text});
  (void)quire::read_hf_vocabulary_hparams({.directory = "fuzz", .generation_config = &text});
  for (const quire::HfQuantizationTexts& texts :
       {quire::HfQuantizationTexts{.directory = "fuzz", .config = &text},
        quire::HfQuantizationTexts{.directory = "fuzz", .quantize_config = &text}}) {
    const auto settings = quire::HfQuantization::read(texts);
    if (settings.ok() && *settings) (void)(*settings)->scheme_of("model.layers.0.self_attn.q_proj");
  }
  (void)quire::parse_safetensors_index(text, "fuzz");
  return 0;
}
