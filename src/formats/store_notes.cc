#include "formats/store_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint_notes.h"
#include "formats/gguf_file.h"
#include "formats/gguf_writer.h"
#include "formats/partial_file.h"

namespace quire {
namespace {

// A value in the file that is to be replaced by one of the same size.
struct Change {
  uint64_t offset = 0;
  std::string before;
  std::string after;
};

// 0 or the error.
int write_all(int file, uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return 0;
}

// Makes all changes or, as far as the disk lets it, none.
Status make_changes(const std::string& path, const std::vector<Change>& changes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return io_error(path + ": cannot be written: " + std::strerror(errno));
  int error = 0;
  for (const Change& change : changes) {
    if (error == 0) error = write_all(file, change.offset, change.after);
  }
  if (error == 0 && ::fsync(file) != 0) error = errno;
  if (error != 0) {
    for (const Change& change : changes) (void)write_all(file, change.offset, change.before);
  }
  ::close(file);
  return error == 0 ? Status() : io_error(path + ": its notes cannot be written: " + std::strerror(error));
}

// Plans to give a key this value.
Status plan(const GgufFile& file, std::string_view key, std::string value, std::vector<Change>& changes) {
  const auto found = std::ranges::find(file.entries, key, &GgufStoredEntry::key);
  if (found == file.entries.end() || found->value.size() != value.size()) {
    return unsupported("has no room for \"" + std::string(key) + "\": only files that `quire quantize` wrote keep it");
  }
  const auto* start = reinterpret_cast<const char*>(file.file.bytes().data());
  const auto* at = reinterpret_cast<const char*>(found->value.data());
  changes.push_back({static_cast<uint64_t>(at - start), std::string(at, value.size()), std::move(value)});
  return {};
}

Status store_in_gguf(const Checkpoint& checkpoint, const CheckpointNotes& notes) {
  const std::string& path = checkpoint.files().front();
  QUIRE_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path, /*with_tensors=*/false));
  std::vector<Change> changes;
  Status planned;
  if (!notes.k_factors.empty()) {
    const std::vector<double> factors(notes.k_factors.begin(), notes.k_factors.end());
    planned = plan(file, kKFactorsKey, encode_gguf_value(factors), changes);
  }
  if (planned.ok() && !notes.proof.empty()) {
    if (notes.proof.size() > kProofRoom)
      return out_of_range(path + ": a proof of " + std::to_string(notes.proof.size()) + " bytes; there is room for " +
                          std::to_string(kProofRoom));
    const std::string padded = notes.proof + std::string(kProofRoom - notes.proof.size(), ' ');
    planned = plan(file, kProofKey, encode_gguf_value(padded), changes);
  }
  if (!planned.ok()) return Status(planned.code(), path + ": " + planned.message());
  return make_changes(path, changes);
}

Status store_in_directory(const Checkpoint& checkpoint, const CheckpointNotes& notes) {
  const std::string path = checkpoint.path() + "/" + std::string(kNotesFile);
  const std::string* text = checkpoint.document(std::string(kNotesFile));
  QUIRE_ASSIGN_OR_RETURN(const std::string changed, changed_notes_text(text == nullptr ? "{}" : *text, notes, path));
  const std::string beside = path + ".new";
  std::remove(beside.c_str());
  QUIRE_RETURN_IF_ERROR(write_text_file(beside, changed));
  if (std::rename(beside.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  std::remove(beside.c_str());
  return io_error(path + ": cannot be replaced: " + std::strerror(error));
}

}  // namespace

Status store_notes(const Checkpoint& checkpoint, const CheckpointNotes& notes) {
  QUIRE_RETURN_IF_ERROR(check_notes(notes, checkpoint.hparams(), checkpoint.path()));
  return checkpoint.document("config.json") != nullptr ? store_in_directory(checkpoint, notes)
                                                       : store_in_gguf(checkpoint, notes);
}

}  // namespace quire
