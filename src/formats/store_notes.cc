#include "formats/store_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "formats/checkpoint_notes.h"
#include "formats/gguf_file.h"
#include "formats/gguf_writer.h"
#include "formats/partial_file.h"

namespace quire {
namespace {

Status write_at(const std::string& path, uint64_t offset, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return io_error(path + ": cannot be written: " + std::strerror(errno));
  const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  const bool complete = written == static_cast<ssize_t>(bytes.size()) && ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  return complete ? Status() : io_error(path + ": cannot be written: " + std::strerror(error));
}

// Replaces the value of a key by one of the same size.
Status replace(const GgufFile& file, const std::string& path, std::string_view key, const std::string& value) {
  const auto found = std::ranges::find(file.entries, key, &GgufStoredEntry::key);
  if (found == file.entries.end() || found->value.size() != value.size()) {
    return unsupported(path + ": has no room for \"" + std::string(key) +
                       "\": only files that `quire quantize` wrote keep it");
  }
  const auto* start = reinterpret_cast<const char*>(file.file.bytes().data());
  return write_at(path, static_cast<uint64_t>(found->value.data() - start), value);
}

Status store_in_gguf(const Checkpoint& checkpoint, const CheckpointNotes& notes) {
  const std::string& path = checkpoint.files().front();
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path, /*with_tensors=*/false));
  if (!notes.k_factors.empty()) {
    const std::vector<double> factors(notes.k_factors.begin(), notes.k_factors.end());
    QUIRE_RETURN_IF_ERROR(replace(file, path, kKFactorsKey, encode_gguf_value(factors)));
  }
  if (notes.proof.empty()) return {};
  if (notes.proof.size() > kProofRoom)
    return out_of_range(path + ": a proof of " + std::to_string(notes.proof.size()) + " bytes; there is room for " +
                        std::to_string(kProofRoom));
  const std::string padded = notes.proof + std::string(kProofRoom - notes.proof.size(), ' ');
  return replace(file, path, kProofKey, encode_gguf_value(padded));
}

Status store_in_directory(const Checkpoint& checkpoint, const CheckpointNotes& notes) {
  const std::string path = checkpoint.path() + "/" + std::string(kNotesFile);
  const std::string* text = checkpoint.document(std::string(kNotesFile));
  QUIRE_ASSIGN_OR_RETURN(const std::string changed, changed_notes_text(text == nullptr ? "{}" : *text, notes, path));
  const std::string beside = path + ".new";
  std::remove(beside.c_str());
  QUIRE_RETURN_IF_ERROR(write_text_file(beside, changed));
  if (std::rename(beside.c_str(), path.c_str()) == 0) return {};
  return io_error(path + ": cannot be replaced: " + std::strerror(errno));
}

}  // namespace

Status store_notes(const Checkpoint& checkpoint, const CheckpointNotes& notes) {
  QUIRE_RETURN_IF_ERROR(check_notes(notes, checkpoint.hparams(), checkpoint.path()));
  return checkpoint.document("config.json") != nullptr ? store_in_directory(checkpoint, notes)
                                                       : store_in_gguf(checkpoint, notes);
}

}  // namespace quire
