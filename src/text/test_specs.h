// Small tokenizers for the tests of text/.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/tokenizer_spec.h"
#include "unicode/utf8.h"

namespace quire::testing_specs {

inline int32_t add_token(std::string_view text, TokenizerSpec* spec,
                         Vocabulary::Lookup lookup = Vocabulary::Lookup::kFindable) {
  QUIRE_CHECK(spec->vocabulary.add(text, lookup).ok());
  if (spec->model == ModelKind::kScores) spec->scores.push_back(kNeverMerged);
  return spec->vocabulary.size() - 1;
}

// The tokens of a byte-level vocabulary: ids 0 to 255 are the bytes.
inline TokenizerSpec byte_level_spec() {
  TokenizerSpec spec;
  spec.byte_level = true;
  for (int b = 0; b < 256; ++b) {
    std::string text;
    append_utf8(byte_to_stand_in(static_cast<uint8_t>(b)), &text);
    add_token(text, &spec);
  }
  return spec;
}

// Adds merges, and the token of each unless it is there.
inline void add_merges(std::initializer_list<std::pair<std::string_view, std::string_view>> merges,
                       TokenizerSpec* spec) {
  for (const auto& [left, right] : merges) {
    const std::string joined = std::string(left) + std::string(right);
    if (spec->vocabulary.find(joined) < 0) add_token(joined, spec);
    spec->merges.push_back({spec->vocabulary.find(left), spec->vocabulary.find(right)});
  }
}

inline AddedToken add_special(std::string_view text, TokenizerSpec* spec, bool special = true) {
  AddedToken token;
  token.id = add_token(text, spec, Vocabulary::Lookup::kHidden);
  token.text = text;
  token.special = special;
  spec->added_tokens.push_back(token);
  return token;
}

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// SentencePiece's kind: id 0 is unknown, 1 is BOS, 2 to 257 are the bytes, then `pieces` with falling scores.
inline TokenizerSpec score_spec(std::initializer_list<std::string_view> pieces) {
  TokenizerSpec spec;
  spec.model = ModelKind::kScores;
  spec.decoder = DecoderKind::kPieces;
  spec.byte_fallback = spec.fuse_unknown = true;
  spec.unknown_id = 0;
  spec.bos_id = 1;
  add_special("<unk>", &spec);
  add_special("<s>", &spec);
  for (int b = 0; b < 256; ++b) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    add_token(std::string("<0x") + kDigits[static_cast<size_t>(b / 16)] + kDigits[static_cast<size_t>(b % 16)] + ">",
              &spec);
  }
  for (const std::string_view piece : pieces) {
    const int32_t id = add_token(piece, &spec);
    spec.scores.back() = -static_cast<float>(id);
  }
  spec.normalizer = {{NormalizerStep::Kind::kPrepend, "", std::string(kSpaceMark)},
                     {NormalizerStep::Kind::kReplace, " ", std::string(kSpaceMark)}};
  spec.prefix_ids = {1};
  spec.strips_leading_space = true;
  return spec;
}

}  // namespace quire::testing_specs
