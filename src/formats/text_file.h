// A small file of a checkpoint, whole: configurations, tokenizers, templates, indices. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/status.h"

namespace quire {

// The bytes of the file, at most `max_bytes`. Fails where it has more, changed while it was read, or is a Git LFS pointer.
Result<std::string> read_text_file(const std::string& path, size_t max_bytes);

}  // namespace quire
