// Any directory of a quantized model: an error, or a checkpoint whose every tensor can be decoded and whose notes can be
// changed.
//
// Input: config.json, quantize_config.json, quire.json and tensors (fuzz/documents.h), with "---" between them.
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/store_notes.h"
#include "fuzz/documents.h"

namespace quire {
namespace {

void read_all(const Checkpoint& checkpoint) {
  for (const TensorRef& tensor : checkpoint.tensors()) {
    (void)tensor.type_name();
    std::vector<float> row(static_cast<size_t>(tensor.columns()));
    for (int64_t r = 0; r < tensor.rows(); ++r) tensor.decode_f32(r, 1, row.data());
  }
}

void try_directory(const std::string& path) {
  (void)Checkpoint::open(path, CheckpointParts::kVocabulary);
  const auto checkpoint = Checkpoint::open(path);
  if (!checkpoint.ok()) return;
  read_all(**checkpoint);
  const CheckpointNotes added{.proof = R"({"kl":0.5})", .k_factors = {}};
  const Status stored = store_notes(**checkpoint, added);
  fuzz_require(stored.ok(), stored.message());
  const auto again = Checkpoint::open(path);
  fuzz_require(again.ok() && (*again)->notes().proof == added.proof &&
                   (*again)->notes().k_factors == (*checkpoint)->notes().k_factors,
               "a new proof is read again, beside the factors");
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const quire::FuzzFolder folder;
  const auto parts = quire::split_documents({reinterpret_cast<const char*>(bytes), size}, 4);
  const char* names[] = {"config.json", "quantize_config.json", "quire.json"};
  for (size_t i = 0; i < std::size(names); ++i) {
    std::error_code ignored;
    std::filesystem::remove(folder.file(names[i]), ignored);
    if (!parts[i].empty()) folder.write(names[i], parts[i]);
  }
  folder.write("model.safetensors", quire::DescribedTensors(parts[3]).file());
  quire::try_directory(folder.path());
  return 0;
}
