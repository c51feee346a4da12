// Hparams from GGUF metadata. Keys: ggml's docs/gguf.md and llama.cpp's loader.
#pragma once

#include "base/status.h"
#include "formats/families.h"
#include "formats/gguf_metadata.h"
#include "formats/hparams.h"

namespace quire {

// Architecture, name, vocabulary size and end-of-generation tokens, for any architecture.
Result<Hparams> read_gguf_vocabulary_hparams(const GgufMetadataView& metadata);

// Everything except tied_embeddings and the vocabulary size of files without a token list, which depend on tensors.
Result<Hparams> read_gguf_hparams(const GgufMetadataView& metadata, const Family& family);

}  // namespace quire
