// Packed weights in a file, so that a later start copies them instead of packing the checkpoint anew.
//
// The file: a line that names the format; a fingerprint, which is text and says what was packed (files with their sizes
// and times of change, every tensor, the type of the head, the device's layout), its length before it; then the bytes of
// the weights as they lie in memory; then a checksum of each block of them, and one of these and the header. It is used
// while its fingerprint is the one expected and all sums are right, and replaced otherwise.
// A cache is a help, never a condition: whatever is wrong with it is a sentence for people, and the weights are packed.
// Thread: one at a time; two processes that write the same file leave one whole file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "formats/checkpoint.h"

namespace quire {

class PackedFile {
 public:
  // The file at `path`, there or not, for these weights.
  PackedFile(std::string path, const Checkpoint& checkpoint, std::optional<DType> head, const DeviceSizes& sizes);

  struct Reading {
    bool filled = false;  // else `memory` may hold anything
    std::string note;     // why the file that is there was not used; empty: there is none, or it was
  };
  // Fills `memory` on the device's threads, and checks every byte of it.
  Reading read(Device& device, Buffer& memory) const;
  // Writes beside the file and renames: it is there whole, or not at all. Makes the folder. The message names the path.
  Status write(Device& device, const Buffer& memory) const;

 private:
  // A failed read is a Status, other contents a note.
  Result<Reading> try_read(Device& device, Buffer& memory) const;

  std::string path_;
  std::string header_;  // up to the weights, padded to kHeaderUnit
};

}  // namespace quire
