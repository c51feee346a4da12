// A file of packed weights that is being written: "NAME.packed.partPID" until all of it is on the disk.
//
// It is locked (flock) for as long as its writer lives, so what a killed program left is told from what another one writes
// now, whatever process has that PID today, and in other containers too. Owner: the writer; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace quire {

class PackedPart {
 public:
  // Makes the folder where there is none. Sets the space aside, so that a full disk is known at once.
  static Result<PackedPart> create(const std::string& path, int64_t bytes);

  PackedPart(PackedPart&& other) noexcept;
  ~PackedPart();  // removes the file unless it is finished

  Status write(std::span<const std::byte> bytes);
  // Puts the bytes on the disk and gives the file its name, in place of the file that has it.
  Status finish();

 private:
  PackedPart(std::string path, std::string part, int fd) : path_(std::move(path)), part_(std::move(part)), fd_(fd) {}

  std::string path_;
  std::string part_;
  int fd_ = -1;  // -1: finished
};

// Removes the parts that dead programs left in the folder. What cannot be removed stays.
void sweep_packed_parts(const std::string& folder);

}  // namespace quire
