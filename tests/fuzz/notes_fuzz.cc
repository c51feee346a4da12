// Any text as quire.json, as a proof, and as the notes of a GGUF file: an error, or notes that can be written, read again
// and changed.
#include <span>
#include <string>
#include <vector>

#include "eval/proof.h"
#include "formats/checkpoint_notes.h"
#include "fuzz/documents.h"
#include "model/k_factors.h"

namespace quire {
namespace {

constexpr const char* kWhere = "fuzz/quire.json";

ModelConfig small_model() {
  ModelConfig config;
  config.heads = {.heads = 1, .kv_heads = 1, .head_dim = 4};
  config.rope_dim = 4;
  config.layers.resize(2);
  return config;
}

Hparams small_hparams() {
  Hparams hparams;
  hparams.layers = 2;
  hparams.heads = 1;
  hparams.kv_heads = 1;
  hparams.head_dim = 4;
  return hparams;
}

void check(const CheckpointNotes& notes) {
  const Hparams hparams = small_hparams();
  const Status writable = check_notes(notes, hparams, kWhere);
  fuzz_require(writable.ok(), writable.message());
  if (!notes.proof.empty()) {
    const auto proof = parse_proof(notes.proof, kWhere);
    if (proof.ok()) {
      const auto again = parse_proof(proof_text(*proof), kWhere);
      fuzz_require(again.ok() && again->kl == proof->kl && again->text == proof->text,
                   "a proof's numbers are read as written");
    }
  }
  (void)check_k_factors(small_model(), notes.k_factors, kWhere);
  const auto written = parse_notes_file(notes_file_text(notes, "gptq"), hparams, kWhere);
  fuzz_require(written.ok() && written->k_factors == notes.k_factors, "notes are read as written");
  // A proof from elsewhere is spelled as JSON libraries do not; from here on its text stays.
  const auto again = parse_notes_file(notes_file_text(*written, "gptq"), hparams, kWhere);
  fuzz_require(again.ok() && again->proof == written->proof && again->proof.empty() == notes.proof.empty(),
               "a proof is read as written");
}

void try_notes_file(const std::string& text) {
  const auto notes = parse_notes_file(text, small_hparams(), kWhere);
  const CheckpointNotes added{.proof = R"({"kl":0.5})", .k_factors = {}};
  const auto changed = changed_notes_text(text, added, kWhere);
  if (!notes.ok()) return;
  check(*notes);
  fuzz_require(changed.ok(), "notes that were read can be changed");
  const auto read = parse_notes_file(*changed, small_hparams(), kWhere);
  fuzz_require(read.ok() && read->proof == added.proof && read->k_factors == notes->k_factors,
               "a new proof leaves the factors");
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  quire::try_notes_file(text);
  if (const auto proof = quire::read_proof(text, "fuzz.gguf"); proof.ok()) {
    quire::check({.proof = *proof, .k_factors = {}});
  }
  std::vector<double> values(size / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes, values.size() * sizeof(double));
  if (const auto factors = quire::read_k_factors(values, quire::small_hparams(), "fuzz.gguf"); factors.ok()) {
    quire::check({.proof = {}, .k_factors = *factors});
  }
  return 0;
}
