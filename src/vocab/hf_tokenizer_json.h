// The steps that a tokenizer.json describes, as parts of a TokenizerSpec. Source of the field meanings:
// huggingface/tokenizers (serde of each component). Pure functions, any thread. Errors name the field.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/tokenizer_spec.h"

namespace quire {

class HfTokenizerJson {
 public:
  // `rest` is that of HfTokenizerParts: everything but vocabulary and merges.
  static Result<HfTokenizerJson> parse(const std::string& rest);

  // In file order, with the ids that the file gives.
  Result<std::vector<AddedToken>> added_tokens() const;
  // Whether pre-tokenizer or decoder go by bytes.
  bool is_byte_level() const;

  Status read_steps(TokenizerSpec* spec) const;  // normalizer, pre-tokenizer, decoder
  Status check_model() const;                    // that quire knows its kind
  Status read_model(TokenizerSpec* spec) const;  // flags and the unknown token; needs vocabulary and added tokens
  // What stands around a text. False: the file says nothing of it.
  Result<bool> read_post_processor(TokenizerSpec* spec) const;

 private:
  struct Document;
  explicit HfTokenizerJson(std::shared_ptr<const Document> document) : document_(std::move(document)) {}

  std::shared_ptr<const Document> document_;
};

}  // namespace quire
