// Text to token ids and back.
//
// A Tokenizer is built from a plain TokenizerSpec (text/tokenizer_spec.h), which engine/ fills from a checkpoint;
// nothing here knows a file format. Immutable after creation, usable from any thread. Where implementations read a
// corner case differently, Hugging Face `tokenizers` is followed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/marked_text.h"
#include "text/tokenizer_spec.h"

namespace quire {

struct EncodeOptions {
  bool add_special = false;     // BOS / EOS as the model's own configuration asks
  bool parse_special = false;   // control tokens written in the text become their ids
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  static Result<std::unique_ptr<Tokenizer>> create(TokenizerSpec spec);

  // Bytes that are not UTF-8 are encoded as U+FFFD. Linear time up to a logarithm in the length of `text`.
  virtual std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const = 0;

  // The bytes a token contributes to the output; empty for control tokens unless `render_special`.
  virtual std::string token_bytes(int32_t id, bool render_special) const = 0;

  // Encodes a rendered chat: control tokens match only in template spans, never in what users wrote. Adds no
  // special token except BOS, where the model wants one and the text does not already begin with it.
  std::vector<int32_t> encode_chat(const MarkedText& text) const;

  // Whole text of `ids`, with invalid UTF-8 as U+FFFD: what a Detokenizer yields for the same ids.
  std::string decode(std::span<const int32_t> ids, bool render_special = false) const;

  int32_t vocab_size() const { return vocab_size_; }
  int32_t bos_id() const { return bos_id_; }                               // -1: none
  bool adds_bos() const { return adds_bos_; }
  bool strips_leading_space() const { return strips_leading_space_; }      // the decoder drops one at the start
  std::span<const int32_t> end_of_generation_ids() const { return end_of_generation_ids_; }   // sorted
  int64_t memory_bytes() const { return memory_bytes_; }                   // heap held, for the memory plan

 protected:
  int32_t vocab_size_ = 0;
  int32_t bos_id_ = -1;
  bool adds_bos_ = false;
  bool strips_leading_space_ = false;
  std::vector<int32_t> end_of_generation_ids_;
  int64_t memory_bytes_ = 0;
};

}  // namespace quire
