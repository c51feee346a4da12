// What quire keeps in the checkpoints it writes (CheckpointNotes), checked as it is read: files come from anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/hparams.h"

namespace quire {

inline constexpr std::string_view kProofKey = "quire.proof";         // GGUF; padded with spaces
inline constexpr std::string_view kKFactorsKey = "quire.k_factors";  // GGUF; all zero: none
inline constexpr std::string_view kNotesFile = "quire.json";         // a directory
inline constexpr size_t kProofRoom = 2048;                           // bytes of a proof that a GGUF file has room for
inline constexpr size_t kMaxProofBytes = size_t{64} << 10;

// `where` names the file, and the key where it has one. A proof of spaces, like no or zero factors, means none.
Result<std::string> read_proof(std::string_view text, const std::string& where);
Result<std::vector<float>> read_k_factors(std::span<const double> values, const Hparams& hparams,
                                          const std::string& where);

// Whether a reader would take these notes; for writers.
Status check_notes(const CheckpointNotes& notes, const Hparams& hparams, const std::string& where);

// quire.json, in both directions; `scheme` is what quantized the model, empty: not stated.
Result<CheckpointNotes> parse_notes_file(const std::string& text, const Hparams& hparams, const std::string& where);
std::string notes_file_text(const CheckpointNotes& notes, const std::string& scheme);
// The text of a quire.json with other notes: those that are empty here stay.
Result<std::string> changed_notes_text(const std::string& text, const CheckpointNotes& notes, const std::string& where);

}  // namespace quire
