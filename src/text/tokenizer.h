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
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/work_budget.h"
#include "text/marked_text.h"
#include "text/tokenizer_spec.h"

namespace quire {

struct EncodeOptions {
  bool add_special = false;    // BOS / EOS as the model's own configuration asks
  bool parse_special = false;  // control tokens written in the text become their ids
};

class Tokenizer {
 public:
  // Fails when the spec contradicts itself: a merge of tokens that do not exist, a pattern that does not compile.
  static Result<std::unique_ptr<Tokenizer>> create(TokenizerSpec spec);

  // Bytes that are not UTF-8 are encoded as U+FFFD. What the vocabulary has no token for becomes its byte tokens or
  // its unknown token, and is dropped where it has neither (as Hugging Face does). Linear time up to a logarithm in
  // the length of `text`. Fails on texts of 256 MiB and more, when a regular expression of the checkpoint exceeds its
  // step limit, and, with the budget's own Status, when `budget` is spent (null: no such end).
  Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options,
                                      const WorkBudget* budget = nullptr) const;

  // Encodes a rendered chat. An added token counts where the template wrote all of it; one that is not special also
  // where the model did. What callers wrote is ordinary text, as are spellings that two authors share. Only added tokens
  // of nothing but white space, not special, are ordinary text themselves and count anywhere. Adds no special token
  // except BOS, where the model wants one and the text does not already begin with it. Fails as encode() does.
  Result<std::vector<int32_t>> encode_chat(const MarkedText& text, const WorkBudget* budget = nullptr) const;

  // The bytes a token contributes to the output; empty for control tokens unless `render_special`, and for ids that
  // name no token.
  std::string token_bytes(int32_t id, bool render_special) const;

  // Whole text of `ids`, with invalid UTF-8 as U+FFFD: what a Detokenizer yields for the same ids.
  std::string decode(std::span<const int32_t> ids, bool render_special = false) const;

  int32_t vocab_size() const { return spec_.vocabulary.size(); }
  int32_t bos_id() const { return spec_.bos_id; }  // -1: none
  bool adds_bos() const { return adds_bos_; }
  bool strips_leading_space() const { return spec_.strips_leading_space; }  // the decoder drops one at the start
  // One U+FFFD for each bad byte (byte-token vocabularies) instead of one for each ill-formed sequence.
  bool replaces_each_bad_byte() const { return spec_.decoder == DecoderKind::kPieces; }
  std::span<const int32_t> end_of_generation_ids() const { return spec_.end_of_generation_ids; }  // sorted
  // A number of tokens that no text of so many bytes falls below: what cannot fit need not be encoded to know it. 0 where
  // the tokenizer may drop text.
  int64_t least_tokens(size_t bytes) const;

  std::span<const std::string> remarks() const { return spec_.remarks; }  // as Checkpoint::remarks()

  int64_t memory_bytes() const;  // heap held, for the memory plan

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

 private:
  struct Parts;
  class Encoder;

  explicit Tokenizer(TokenizerSpec spec);

  TokenizerSpec spec_;  // without what the parts took over
  bool adds_bos_ = false;
  size_t longest_token_bytes_ = 0;  // 0: a token may stand for text of any length
  std::vector<bool> is_special_;    // by id
  // Added tokens that are looked for in normalized text are also rendered in their normalized form. By id.
  std::vector<std::pair<int32_t, std::string>> normalized_texts_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quire
