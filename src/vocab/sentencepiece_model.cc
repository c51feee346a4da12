#include "vocab/sentencepiece_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "text/vocabulary.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

// Field numbers of sentencepiece_model.proto.
enum ModelField : uint32_t { kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3 };
enum PieceField : uint32_t { kPieceText = 1, kPieceScore = 2, kPieceType = 3 };
enum TrainerField : uint32_t {
  kModelType = 3,
  kByteFallback = 35,
  kUnkId = 40,
  kBosId = 41,
  kEosId = 42,
  kUnkPiece = 45,
  kBosPiece = 46,
  kEosPiece = 47
};
enum NormalizerField : uint32_t { kCharsMap = 2, kDummyPrefix = 3, kExtraSpaces = 4, kEscapeSpaces = 5 };

constexpr uint64_t kBpe = 2;

// One field of a message: a number (varint or fixed), or bytes.
struct Field {
  uint32_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
  enum class Kind { kVarint, kFixed, kBytes } kind = Kind::kVarint;
};

// Fields of a message in order. Fails on bytes that are no message.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return at_ == bytes_.size(); }

  bool next(Field* field) {
    uint64_t tag = 0;
    if (!varint(&tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
    field->number = static_cast<uint32_t>(tag >> 3);
    field->bytes = {};
    switch (tag & 7) {
      case 0:
        field->kind = Field::Kind::kVarint;
        return varint(&field->value);
      case 1:
        return fixed(8, field);
      case 5:
        return fixed(4, field);
      case 2: {
        uint64_t size = 0;
        if (!varint(&size) || size > bytes_.size() - at_) return false;
        field->kind = Field::Kind::kBytes;
        field->bytes = bytes_.substr(at_, static_cast<size_t>(size));
        at_ += static_cast<size_t>(size);
        return true;
      }
      default:
        return false;  // groups are not used
    }
  }

 private:
  bool varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool fixed(size_t size, Field* field) {
    if (bytes_.size() - at_ < size) return false;
    field->kind = Field::Kind::kFixed;
    field->value = 0;
    for (size_t i = 0; i < size; ++i) {
      field->value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i);
    }
    at_ += size;
    return true;
  }

  std::string_view bytes_;
  size_t at_ = 0;
};

Status damaged(const std::string& what) {
  return corrupt("tokenizer.model: " + what + ": the file is damaged, or no SentencePiece model");
}

// Calls `take` with each field of the message.
template <typename Take>
Status each_field(std::string_view bytes, const std::string& what, Take take) {
  Message message(bytes);
  Field field;
  while (!message.done()) {
    if (!message.next(&field)) return damaged(what + " ends within a field");
    QUIRE_RETURN_IF_ERROR(take(std::as_const(field)));
  }
  return {};
}

Status read_piece(std::string_view bytes, SentencepieceModel* model) {
  SentencepieceModel::Piece piece;
  uint64_t type = 1;
  QUIRE_RETURN_IF_ERROR(each_field(bytes, "a piece", [&](const Field& field) -> Status {
    if (field.number == kPieceText) piece.text = field.bytes;
    if (field.number == kPieceScore) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == kPieceType) type = field.value;
    return {};
  }));
  constexpr size_t kMaxPieceBytes = 256;  // what joins is looked up at each character
  const std::string name = "piece " + std::to_string(model->pieces.size());
  if (type < 1 || type > 6) return damaged(name + " has the unknown type " + std::to_string(type));
  if (!std::isfinite(piece.score)) return damaged(name + " has no number as its score");
  if (piece.text.size() > kMaxPieceBytes) return out_of_range("tokenizer.model: " + name + " is longer than 256 bytes");
  if (!is_valid_utf8(piece.text)) return damaged(name + " is not UTF-8");
  if (model->pieces.size() == static_cast<size_t>(Vocabulary::kMaxSize)) {
    return out_of_range("tokenizer.model: has more than " + std::to_string(Vocabulary::kMaxSize) + " pieces");
  }
  piece.type = static_cast<SentencepieceModel::Type>(type);
  model->pieces.push_back(std::move(piece));
  return {};
}

Status read_trainer(std::string_view bytes, SentencepieceModel* model) {
  return each_field(bytes, "the trainer's settings", [&](const Field& field) -> Status {
    const auto id = static_cast<int32_t>(static_cast<uint32_t>(field.value));
    if (field.number == kModelType) model->is_bpe = field.value == kBpe;
    if (field.number == kByteFallback) model->byte_fallback = field.value != 0;
    if (field.number == kUnkId) model->unknown_id = id;
    if (field.number == kBosId) model->bos_id = id;
    if (field.number == kEosId) model->eos_id = id;
    if (field.number == kUnkPiece) model->unknown_piece = field.bytes;
    if (field.number == kBosPiece) model->bos_piece = field.bytes;
    if (field.number == kEosPiece) model->eos_piece = field.bytes;
    return {};
  });
}

Status read_normalizer(std::string_view bytes, SentencepieceModel* model) {
  return each_field(bytes, "the normalizer's settings", [&](const Field& field) -> Status {
    if (field.number == kCharsMap) model->character_map = field.bytes;
    if (field.number == kDummyPrefix) model->adds_dummy_prefix = field.value != 0;
    if (field.number == kExtraSpaces) model->removes_extra_spaces = field.value != 0;
    if (field.number == kEscapeSpaces) model->escapes_spaces = field.value != 0;
    return {};
  });
}

// A merge to be, and what it is sorted by.
struct PieceMerge {
  double rank;  // lowest first
  int32_t id;   // of what it makes
  std::string_view left, right;
};

bool by_id(const PieceMerge& a, const PieceMerge& b) {
  const auto characters = [](std::string_view text) {
    return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  };
  const auto key = [&](const PieceMerge& m) { return std::tuple(m.id, characters(m.left), characters(m.right)); };
  return key(a) < key(b);
}
bool by_score(const PieceMerge& a, const PieceMerge& b) {
  return std::tie(a.rank, a.id, a.left, a.right) < std::tie(b.rank, b.id, b.left, b.right);
}

}  // namespace

Result<SentencepieceModel> read_sentencepiece_model(std::string_view bytes) {
  SentencepieceModel model;
  QUIRE_RETURN_IF_ERROR(each_field(bytes, "the model", [&](const Field& field) -> Status {
    if (field.number == kPieces) return read_piece(field.bytes, &model);
    if (field.number == kTrainerSpec) return read_trainer(field.bytes, &model);
    if (field.number == kNormalizerSpec) return read_normalizer(field.bytes, &model);
    return {};
  }));
  if (model.pieces.empty()) return damaged("there are no pieces");
  return model;
}

HfTokenizerParts sentencepiece_parts(const SentencepieceModel& model, PieceOrder order) {
  using Type = SentencepieceModel::Type;
  HfTokenizerParts parts;
  std::unordered_map<std::string_view, int32_t> joinable;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencepieceModel::Piece& piece = model.pieces[i];
    parts.tokens.add(piece.text);
    parts.ids.push_back(static_cast<int32_t>(i));
    const bool joins = piece.type == Type::kNormal || (order == PieceOrder::kById && piece.type == Type::kUserDefined);
    if (joins) joinable.emplace(piece.text, static_cast<int32_t>(i));
  }
  std::vector<PieceMerge> merges;
  for (const auto& [text, id] : joinable) {
    for (size_t cut = utf8_length(text.empty() ? 'a' : text[0]); cut < text.size(); cut += utf8_length(text[cut])) {
      const std::string_view left = text.substr(0, cut), right = text.substr(cut);
      if (!joinable.contains(left) || !joinable.contains(right)) continue;
      merges.push_back({-static_cast<double>(model.pieces[static_cast<size_t>(id)].score), id, left, right});
    }
  }
  std::ranges::sort(merges, order == PieceOrder::kById ? by_id : by_score);
  for (const PieceMerge& merge : merges) {
    parts.merge_parts.add(merge.left);
    parts.merge_parts.add(merge.right);
  }
  return parts;
}

}  // namespace quire
