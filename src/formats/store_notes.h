// Changes the notes of a finished checkpoint that quire wrote, in place.
#pragma once

#include "base/status.h"
#include "formats/checkpoint.h"

namespace quire {

// In a GGUF file there is room for a proof, and for K factors where it was written with room for them; in a directory
// quire.json is replaced whole. What `notes` leave empty stays as it is. Fails on files that others wrote.
Status store_notes(const Checkpoint& checkpoint, const CheckpointNotes& notes);

}  // namespace quire
