#include "cli/suggestion.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace quire {
namespace {

constexpr size_t kLongestWord = 64;  // longer ones are no slips of the finger
constexpr size_t kShortestBeginning = 3;

std::string folded(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return text;
}

// Letters to change, add, take away, or swap with their neighbour.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> two_before(b.size() + 1);
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    two_before = std::exchange(before, row);
  }
  return before[b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string wanted = folded(word);
  std::string_view nearest;
  size_t fewest = std::max<size_t>(wanted.size() / 3, 1) + 1;
  std::string_view longer;
  size_t longer_words = 0;
  for (const std::string_view candidate : known) {
    const std::string name = folded(candidate);
    if (const size_t wrong = distance(wanted, name); wrong < fewest) {
      fewest = wrong;
      nearest = candidate;
    }
    if (wanted.size() >= kShortestBeginning && name.starts_with(wanted)) {
      longer = candidate;
      ++longer_words;
    }
  }
  if (!nearest.empty()) return nearest;
  return longer_words == 1 ? longer : std::string_view();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known, std::string_view before) {
  const std::string_view nearest = nearest_word(word, known);
  if (nearest.empty()) return {};
  return std::string("; did you mean ").append(before).append(nearest).append("?");
}

}  // namespace quire
