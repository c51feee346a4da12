// A SentencePiece model file (tokenizer.model): its pieces and the settings that change how text is split.
//
// Reads the protocol buffer's wire format itself: four messages of it are needed. Source: sentencepiece_model.proto and
// the protocol buffers encoding. Hostile bytes: bounds are checked, unknown fields skipped, pieces counted. Pure
// functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vocab/hf_tokenizer_reader.h"

namespace quire {

struct SentencepieceModel {
  enum class Type { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;
    float score = 0.0f;
    Type type = Type::kNormal;
  };
  std::vector<Piece> pieces;  // by id

  bool is_bpe = false;  // else unigram, word or character
  bool byte_fallback = false;
  int32_t unknown_id = 0, bos_id = 1, eos_id = 2;  // -1: none
  std::string unknown_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>";

  std::string character_map;  // precompiled normalization; empty: none
  bool adds_dummy_prefix = true, removes_extra_spaces = true, escapes_spaces = true;
};

Result<SentencepieceModel> read_sentencepiece_model(std::string_view bytes);

// In which order pairs of pieces are joined, as transformers makes merges of pieces.
enum class PieceOrder {
  kById,     // classes of their own: the piece of lowest id first; control and byte pieces are never made
  kByScore,  // the model itself: the normal piece of highest score first
};

// The pieces as a vocabulary with merges; `rest` stays empty. Takes time in proportion to the text of the pieces.
HfTokenizerParts sentencepiece_parts(const SentencepieceModel& model, PieceOrder order);

}  // namespace quire
