// Remembers the ids of short pieces within one encode call: words repeat.
//
// Direct-mapped and small, so that it costs little to make anew for each call and needs no lock. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/hash.h"

namespace quire {

class PieceCache {
 public:
  // Sized for a text of `text_bytes`; none at all for a short one.
  explicit PieceCache(size_t text_bytes) {
    constexpr size_t kMinTextBytes = 512, kMaxEntries = 4096;
    if (text_bytes < kMinTextBytes) return;
    size_t entries = kMinTextBytes / 8;
    while (entries < kMaxEntries && entries < text_bytes / 8) entries *= 2;
    entries_.resize(entries);
  }

  // The ids of `piece`; empty: not remembered.
  std::span<const int32_t> find(std::string_view piece) const {
    if (!fits(piece)) return {};
    const Entry& entry = entries_[slot_of(piece)];
    if (entry.key_bytes != piece.size() || std::memcmp(entry.key.data(), piece.data(), piece.size()) != 0) return {};
    return {entry.ids.data(), entry.id_count};
  }

  void put(std::string_view piece, std::span<const int32_t> ids) {
    if (!fits(piece) || ids.size() > kMaxIds) return;
    Entry& entry = entries_[slot_of(piece)];
    entry.key_bytes = static_cast<uint8_t>(piece.size());
    entry.id_count = static_cast<uint8_t>(ids.size());
    std::copy(piece.begin(), piece.end(), entry.key.begin());
    std::copy(ids.begin(), ids.end(), entry.ids.begin());
  }

 private:
  static constexpr size_t kMaxKeyBytes = 22, kMaxIds = 6;
  struct Entry {
    std::array<int32_t, kMaxIds> ids{};
    uint8_t id_count = 0;
    uint8_t key_bytes = 0;  // 0: free
    std::array<char, kMaxKeyBytes> key{};
  };

  bool fits(std::string_view piece) const { return !entries_.empty() && piece.size() <= kMaxKeyBytes; }
  size_t slot_of(std::string_view piece) const {
    return static_cast<size_t>(hash_bytes(piece)) & (entries_.size() - 1);
  }

  std::vector<Entry> entries_;
};

}  // namespace quire
