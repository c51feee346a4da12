// Packed weights in a file, so that a later start copies them instead of packing the checkpoint anew.
//
// The file: a line that names the format; a fingerprint, which is text and says what was packed (files with their sizes
// and times of change, every tensor, the type of the head, the device's layout), its length before it; then the bytes of
// the weights as they lie in memory. It is used while its fingerprint is the one expected, and replaced otherwise.
// Thread: one at a time; two processes that write the same file leave one whole file.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "device/device.h"
#include "device/memory.h"
#include "formats/checkpoint.h"

namespace quire {

class PackedFile {
 public:
  // The file at `path`, there or not, for these weights.
  static Result<PackedFile> of(const std::string& path, const Checkpoint& checkpoint, std::optional<DType> head,
                               const DeviceSizes& sizes);

  // Fills `memory` on the device's threads. False: there is no such file yet, or it holds something else.
  Result<bool> read(Device& device, Buffer& memory) const;
  // Writes beside the file and renames: it is there whole, or not at all.
  Status write(const Buffer& memory) const;

 private:
  std::string path_;
  std::string header_;  // up to the weights, padded to kHeaderUnit
};

}  // namespace quire
