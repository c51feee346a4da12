#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "text/byte_alphabet.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr int32_t kMerged = -1;                          // id of a symbol that its neighbour took up

// Whether the call that the workspace serves is to stop after one more unit of work.
bool stopped(const BpeModel::Workspace& workspace) { return workspace.meter != nullptr && workspace.meter->spent(); }

bool later(const BpeModel::Candidate& a, const BpeModel::Candidate& b) { return a.key > b.key; }

// Like std::make_heap, but can be stopped.
void make_heap(BpeModel::Workspace* workspace) {
  std::vector<BpeModel::Candidate>& heap = workspace->heap;
  for (size_t root = heap.size() / 2; root-- > 0;) {
    if (stopped(*workspace)) return;
    const BpeModel::Candidate sifted = heap[root];
    size_t hole = root;
    for (size_t child = 2 * hole + 1; child < heap.size(); child = 2 * hole + 1) {
      if (child + 1 < heap.size() && later(heap[child], heap[child + 1])) ++child;
      if (!later(sifted, heap[child])) break;
      heap[hole] = heap[child];
      hole = child;
    }
    heap[hole] = sifted;
  }
}

// Maps floats to integers of the opposite order.
uint32_t descending_key(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 becomes +0
  const uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

}  // namespace

Result<BpeModel> BpeModel::create(TokenizerSpec* spec) {
  BpeModel model(spec);
  if (spec->model == ModelKind::kMerges) {
    QUIRE_ASSIGN_OR_RETURN(model.merges_, MergeTable::create(spec->vocabulary, spec->merges));
    spec->merges = {};
  } else {
    if (spec->scores.size() != static_cast<size_t>(spec->vocabulary.size())) {
      return corrupt("the tokenizer has " + std::to_string(spec->vocabulary.size()) + " tokens but " +
                     std::to_string(spec->scores.size()) + " scores");
    }
    model.scores_ = std::move(spec->scores);
    if (std::any_of(model.scores_.begin(), model.scores_.end(), [](float s) { return s != s; })) {
      return corrupt("a token's score is not a number");
    }
  }
  model.find_byte_ids();
  model.find_joints();
  return model;
}

void BpeModel::find_byte_ids() {
  for (int b = 0; b < 256; ++b) {
    std::string text;
    if (spec_->byte_level) {
      append_utf8(byte_to_stand_in(static_cast<uint8_t>(b)), &text);
    } else {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", b);
      text = name;
    }
    byte_ids_[static_cast<size_t>(b)] = spec_->vocabulary.find(text);
  }
}

void BpeModel::find_joints() {
  const Vocabulary& vocabulary = spec_->vocabulary;
  cuts_at_spaces_ = !spec_->byte_level && !spec_->ignore_merges && vocabulary.find(kSpaceMark) >= 0;
  if (!cuts_at_spaces_) return;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    for (size_t at = text.find(kSpaceMark, 1); at != std::string_view::npos; at = text.find(kSpaceMark, at + 1)) {
      if (!text.substr(0, at).ends_with(kSpaceMark)) joins_space_.set(static_cast<unsigned char>(text[at - 1]));
    }
  }
}

size_t BpeModel::independent_end(std::string_view piece, size_t begin, WorkMeter* meter) const {
  if (!cuts_at_spaces_) return piece.size();
  for (size_t at = begin + 1;; ++at) {
    at = piece.find(kSpaceMark, at);
    if (at == std::string_view::npos || (meter != nullptr && meter->spent())) return piece.size();
    if (piece.substr(begin, at - begin).ends_with(kSpaceMark)) continue;
    if (!joins_space_.test(static_cast<unsigned char>(piece[at - 1]))) return at;
  }
}

// One symbol for each character that is a token, for each byte of one that is not, and for what is unknown. Ends with a
// sentinel at the end of the piece.
void BpeModel::make_symbols(std::string_view piece, Workspace* workspace) const {
  std::vector<Symbol>* const symbols = &workspace->symbols;
  symbols->clear();
  symbols->reserve(piece.size() + 1);
  const auto add = [symbols](int32_t id, size_t begin) {
    const auto index = static_cast<int32_t>(symbols->size());
    symbols->push_back({id, static_cast<uint32_t>(begin), index - 1, index + 1});
  };
  const auto add_unknown = [&](size_t begin) {
    if (spec_->unknown_id < 0) return;
    if (spec_->fuse_unknown && !symbols->empty() && symbols->back().id == spec_->unknown_id) return;
    add(spec_->unknown_id, begin);
  };
  for (size_t at = 0; at < piece.size() && !stopped(*workspace);) {
    const size_t length = utf8_length(piece[at]);
    const int32_t id = spec_->byte_level ? -1 : spec_->vocabulary.find(piece.substr(at, length));
    const auto byte_id = [&](size_t i) { return byte_ids_[static_cast<unsigned char>(piece[at + i])]; };
    if (id >= 0) {
      add(id, at);
    } else if (spec_->byte_level) {
      for (size_t i = 0; i < length; ++i) {
        if (byte_id(i) >= 0) {
          add(byte_id(i), at + i);
        } else {
          add_unknown(at + i);
        }
      }
    } else {
      bool has_bytes = spec_->byte_fallback;
      for (size_t i = 0; i < length; ++i) has_bytes = has_bytes && byte_id(i) >= 0;
      if (!has_bytes) {
        add_unknown(at);
      } else {
        for (size_t i = 0; i < length; ++i) add(byte_id(i), at + i);
      }
    }
    at += length;
  }
  add(kMerged, piece.size());
}

// `lookup(left, right, &priority, &id)` says whether two neighbours join. Symbol 0 keeps its place, so the list can be
// walked from there; the last symbol is the sentinel.
template <typename Lookup>
void BpeModel::merge(const Lookup& lookup, Workspace* workspace) {
  std::vector<Symbol>& symbols = workspace->symbols;
  std::vector<Candidate>& heap = workspace->heap;
  const auto last = static_cast<int32_t>(symbols.size()) - 1;
  const auto at = [&symbols](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  const auto candidate = [&](int32_t left, Candidate* out) {
    const int32_t right = at(left).next;
    uint32_t priority = 0;
    if (right >= last || !lookup(at(left), at(right), at(at(right).next), &priority, &out->id)) return false;
    out->key = static_cast<uint64_t>(priority) << 32 | static_cast<uint32_t>(left);
    out->end = at(at(right).next).begin;
    return true;
  };
  const auto push = [&](int32_t left) {
    Candidate c;
    if (!candidate(left, &c)) return;
    heap.push_back(c);
    std::push_heap(heap.begin(), heap.end(), later);
  };

  heap.clear();
  heap.reserve(symbols.size());  // growing by doubling would copy for longer than a call may go on unasked
  for (int32_t i = 0; i + 1 < last && !stopped(*workspace); ++i) {
    Candidate c;
    if (candidate(i, &c)) heap.push_back(c);
  }
  make_heap(workspace);
  while (!heap.empty() && !stopped(*workspace)) {
    const Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const auto left = static_cast<int32_t>(static_cast<uint32_t>(best.key));
    const int32_t right = at(left).next;
    // Symbols only grow: the same start of the left and the same end of the right mean the same two symbols.
    if (at(left).id == kMerged || right >= last || at(at(right).next).begin != best.end) continue;
    at(left).id = best.id;
    at(left).next = at(right).next;
    at(at(right).next).previous = left;
    at(right).id = kMerged;
    if (at(left).previous >= 0) push(at(left).previous);
    push(left);
  }
}

void BpeModel::encode(std::string_view piece, Workspace* workspace, std::vector<int32_t>* out) const {
  if (spec_->ignore_merges) {
    const int32_t id = spec_->vocabulary.find(spec_->byte_level ? bytes_to_stand_ins(piece) : piece);
    if (id >= 0) {
      out->push_back(id);
      return;
    }
  }
  make_symbols(piece, workspace);
  if (merges_) {
    merge(
        [this](const Symbol& left, const Symbol& right, const Symbol&, uint32_t* priority, int32_t* id) {
          const uint32_t rank = merges_->rank(left.id, right.id);
          if (rank == MergeTable::kNone) return false;
          *priority = rank;
          *id = merges_->result(rank);
          return true;
        },
        workspace);
  } else {
    merge(
        [this, piece](const Symbol& left, const Symbol& right, const Symbol& next, uint32_t* priority, int32_t* id) {
          if (left.id == spec_->unknown_id || right.id == spec_->unknown_id) return false;
          *id = spec_->vocabulary.find(piece.substr(left.begin, next.begin - left.begin));
          if (*id < 0 || scores_[static_cast<size_t>(*id)] <= kNeverMerged) return false;
          *priority = descending_key(scores_[static_cast<size_t>(*id)]);
          return true;
        },
        workspace);
  }
  const auto last = static_cast<int32_t>(workspace->symbols.size()) - 1;
  for (int32_t i = 0; i < last; i = workspace->symbols[static_cast<size_t>(i)].next) {
    out->push_back(workspace->symbols[static_cast<size_t>(i)].id);
  }
}

int64_t BpeModel::memory_bytes() const {
  return (merges_ ? merges_->memory_bytes() : 0) + static_cast<int64_t>(scores_.capacity() * sizeof scores_[0]);
}

}  // namespace quire
