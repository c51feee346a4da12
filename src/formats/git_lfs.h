// Git LFS leaves a small text in place of a large file that was not fetched; every reader would call it damaged.
// Source: the Git LFS pointer specification.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace quire {

// Fails, saying what to do, where the bytes of the file at `path` are such a pointer.
Status refuse_git_lfs_pointer(std::span<const std::byte> bytes, const std::string& path);

}  // namespace quire
