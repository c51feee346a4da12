// Everything a Tokenizer is built from, as plain data: the steps of a Hugging Face tokenizer.json, to which GGUF's
// tokenizer keys reduce.
//
// Encoding: cut out added tokens, normalize what lies between, cut out the added tokens that match normalized text,
// split into pieces (pre-tokenizer), encode each piece (model), put `prefix_ids` and `suffix_ids` around.
// Source: huggingface/tokenizers, tokenizers/src/tokenizer/mod.rs and added_vocabulary.rs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/vocabulary.h"

namespace quire {

// A token that is looked for in the text before the model sees it.
struct AddedToken {
  int32_t id = 0;
  std::string text;
  bool special = false;      // control token: matched only on request, not rendered by default
  bool normalized = false;   // looked for after normalization, in its own normalized form
  bool lstrip = false;       // takes the whitespace before it along
  bool rstrip = false;       // takes the whitespace after it along
  bool single_word = false;  // no word character may stand beside it
};

struct NormalizerStep {
  enum class Kind {
    kNfc,
    kPrepend,  // `content` before a text that is not empty
    kReplace,  // every `pattern`, literally, by `content`
  };
  Kind kind = Kind::kNfc;
  std::string pattern;
  std::string content;

  bool operator==(const NormalizerStep&) const = default;
};

// What becomes of the matches of a pattern and of the text between them.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

enum class PrependScheme { kNone, kFirst, kAlways };

struct PreTokenizerStep {
  enum class Kind {
    kRegex,         // `pattern` in Oniguruma's Ruby syntax, as tokenizer.json writes it
    kLiteral,       // `pattern` literally
    kDigits,        // every numeric character
    kPunctuation,   // every punctuation character
    kPrefixSpace,   // one U+0020 before a piece that does not begin with one
    kByteStandIns,  // every byte becomes its stand-in (text/byte_alphabet.h), for steps that follow it
    kMetaspace,     // U+0020 becomes `pattern`; prepend `pattern` by `prepend`, split before it if `split`
  };
  Kind kind = Kind::kRegex;
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // kRegex, kLiteral: the text between the matches counts as matched
  PrependScheme prepend = PrependScheme::kNone;
  bool split = true;

  bool operator==(const PreTokenizerStep&) const = default;
};

enum class ModelKind {
  kMerges,  // byte-pair encoding: the pair of lowest rank in `merges` first
  kScores,  // SentencePiece's: the pair whose text is the token of highest score first
};

enum class DecoderKind {
  kByteLevel,  // every character of a token stands for one byte (text/byte_alphabet.h)
  kPieces,     // text with U+2581 for spaces, and byte tokens "<0xE4>"
};

struct Merge {
  int32_t left = 0;
  int32_t right = 0;
};

// Score of a token that no pair may merge into.
inline constexpr float kNeverMerged = -3.0e38f;

struct TokenizerSpec {
  Vocabulary vocabulary;
  std::vector<AddedToken> added_tokens;

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;

  ModelKind model = ModelKind::kMerges;
  std::vector<Merge> merges;   // kMerges: by rank, lowest first
  std::vector<float> scores;   // kScores: one a token
  bool byte_level = false;     // the model reads bytes through text/byte_alphabet.h, not characters
  bool byte_fallback = false;  // a character that is no token becomes its bytes' tokens "<0x00>".."<0xFF>"
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  bool fuse_unknown = false;   // a run of unknown characters is one unknown token
  int32_t unknown_id = -1;     // -1: unknown characters are dropped

  DecoderKind decoder = DecoderKind::kByteLevel;
  bool strips_leading_space = false;

  std::vector<int32_t> prefix_ids;             // what add_special puts before a text
  std::vector<int32_t> suffix_ids;             // and after it
  int32_t bos_id = -1;                         // -1: none
  std::vector<int32_t> end_of_generation_ids;  // in any order

  // What a person should hear of how the files were read, as Checkpoint::remarks().
  std::vector<std::string> remarks;
};

}  // namespace quire
