#include "text/vocabulary.h"

#include <limits>
#include <utility>

#include "text/hash.h"

namespace quire {
namespace {

constexpr int kIdBits = 20;
constexpr uint32_t kIdMask = (1u << kIdBits) - 1;
constexpr size_t kMinSlots = 64;

uint32_t slot_value(int32_t id, uint64_t hash) {
  return static_cast<uint32_t>(hash >> (64 - (32 - kIdBits))) << kIdBits | static_cast<uint32_t>(id + 1);
}

}  // namespace

void Vocabulary::reserve(size_t tokens, size_t bytes) {
  offsets_.reserve(tokens + 1);
  blob_.reserve(bytes);
  size_t slots = kMinSlots;
  while (slots * 3 < tokens * 5) slots *= 2;  // at most 60 % full
  if (slots > slots_.size()) grow(slots);
}

Status Vocabulary::add(std::string_view text, Lookup lookup) {
  if (size() == kMaxSize) {
    return out_of_range("the vocabulary holds more than " + std::to_string(kMaxSize) + " tokens");
  }
  if (text.size() > std::numeric_limits<uint32_t>::max() - blob_.size()) {
    return out_of_range("the texts of the vocabulary exceed 4 GiB");
  }
  const int32_t id = size();
  const bool findable = lookup == Lookup::kFindable && !text.empty();
  if (findable) {
    const int32_t other = find(text);
    if (other >= 0) {
      return corrupt("tokens " + std::to_string(other) + " and " + std::to_string(id) + " have the same text '" +
                     std::string(text) + "'");
    }
    if (slots_.size() * 3 < (used_ + 1) * 5) grow(slots_.empty() ? kMinSlots : slots_.size() * 2);
  }
  blob_ += text;
  offsets_.push_back(static_cast<uint32_t>(blob_.size()));
  if (findable) insert(id, hash_bytes(text));
  return {};
}

int32_t Vocabulary::find(std::string_view text) const {
  if (used_ == 0) return -1;
  const uint64_t hash = hash_bytes(text);
  const uint32_t tag = slot_value(-1, hash);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const uint32_t slot = slots_[i];
    if (slot == 0) return -1;
    if ((slot & ~kIdMask) != tag) continue;
    const auto id = static_cast<int32_t>(slot & kIdMask) - 1;
    if (this->text(id) == text) return id;
  }
}

void Vocabulary::insert(int32_t id, uint64_t hash) {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i] != 0) i = (i + 1) & mask;
  slots_[i] = slot_value(id, hash);
  ++used_;
}

void Vocabulary::grow(size_t slots) {
  const std::vector<uint32_t> old = std::exchange(slots_, std::vector<uint32_t>(slots));
  used_ = 0;
  for (const uint32_t slot : old) {
    if (slot == 0) continue;
    const auto id = static_cast<int32_t>(slot & kIdMask) - 1;
    insert(id, hash_bytes(text(id)));
  }
}

int64_t Vocabulary::memory_bytes() const {
  return static_cast<int64_t>(blob_.capacity() + offsets_.capacity() * sizeof offsets_[0] +
                              slots_.capacity() * sizeof slots_[0]);
}

}  // namespace quire
