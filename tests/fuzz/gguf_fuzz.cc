// Any bytes as a GGUF file: an error, or a checkpoint whose every tensor can be decoded, and whose notes can be changed
// where there is room.
#include <cstdlib>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/store_notes.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const quire::MemoryFile file(bytes, size);
  if (!file.valid()) return 0;
  (void)quire::Checkpoint::open(file.path(), quire::CheckpointParts::kVocabulary);
  const auto checkpoint = quire::Checkpoint::open(file.path());
  if (!checkpoint.ok()) return 0;
  for (const quire::TensorRef& tensor : (*checkpoint)->tensors()) {
    std::vector<float> row(static_cast<size_t>(tensor.columns()));
    for (int64_t r = 0; r < tensor.rows(); ++r) tensor.decode_f32(r, 1, row.data());
  }
  const quire::CheckpointNotes added{.proof = R"({"kl":0.5})", .k_factors = (*checkpoint)->notes().k_factors};
  if (!quire::store_notes(**checkpoint, added).ok()) return 0;
  const auto again = quire::Checkpoint::open(file.path());
  if (!again.ok() || (*again)->notes().proof != added.proof || (*again)->notes().k_factors != added.k_factors)
    std::abort();
  return 0;
}
