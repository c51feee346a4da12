// Which added tokens a Hugging Face tokenizer has in the end, and under which ids, from all files that name some.
//
// As transformers 5.24 (TokenizersBackend.__init__) and tokenizers (AddedVocabulary::add_tokens) do: a token of the
// vocabulary keeps its id there, another gets the next free one, whatever id a file gives it; flags that are named later
// replace earlier ones. Pure function, any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer_spec.h"
#include "vocab/hf_tokenizer_class.h"
#include "vocab/hf_tokenizer_reader.h"
#include "vocab/hf_tokenizer_settings.h"

namespace quire {

struct HfAddedTokenInput {
  HfTokenizerClass tokenizer_class = HfTokenizerClass::kBackend;
  const HfTokenizerSettings* settings = nullptr;
  const HfTokenizerParts* parts = nullptr;       // the vocabulary
  const std::vector<AddedToken>* own = nullptr;  // of tokenizer.json, with the ids that it gives
};

struct HfAddedTokens {
  std::vector<AddedToken> tokens;   // by id
  std::vector<HfNamedToken> named;  // names that templates may use; ids set
};

// Adds a remark for each file whose ids or tokens are not what comes out.
Result<HfAddedTokens> merge_hf_added_tokens(const HfAddedTokenInput& input, std::vector<std::string>* remarks);

}  // namespace quire
