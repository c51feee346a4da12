// Any regular expression that a tokenizer document may contain, over any text: an error, or pieces that lie in the text in
// order, begin and end between characters and leave out only what the step removes; the same each time.
//
// Input: settings, pattern and text, with "---" between them. Settings are letters: r(emoved), p(revious), n(ext) and
// c(ontiguous) for the behaviour, i(nverted), l(iteral).
#include <string>

#include "fuzz/documents.h"
#include "text/pre_tokenizer.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

// A pattern may take its limit of steps at each character.
constexpr size_t kMostTextBytes = 1024;

bool has(std::string_view settings, char letter) { return settings.find(letter) != std::string_view::npos; }

PreTokenizerStep step_of(std::string_view settings, std::string pattern) {
  PreTokenizerStep step;
  step.kind = has(settings, 'l') ? PreTokenizerStep::Kind::kLiteral : PreTokenizerStep::Kind::kRegex;
  step.pattern = std::move(pattern);
  step.invert = has(settings, 'i');
  if (has(settings, 'r')) step.behavior = SplitBehavior::kRemoved;
  if (has(settings, 'p')) step.behavior = SplitBehavior::kMergedWithPrevious;
  if (has(settings, 'n')) step.behavior = SplitBehavior::kMergedWithNext;
  if (has(settings, 'c')) step.behavior = SplitBehavior::kContiguous;
  return step;
}

bool between_characters(std::string_view text, size_t at) {
  return at == text.size() || (static_cast<uint8_t>(text[at]) & 0xC0) != 0x80;
}

void check(const PieceList& list, std::string_view text, bool removes) {
  fuzz_require(list.text == text, "the step splits and changes nothing");
  size_t end = 0;
  for (const TextRange piece : list.pieces) {
    fuzz_require(piece.begin >= end && piece.end > piece.begin && piece.end <= text.size(), "pieces lie in order");
    fuzz_require(removes || piece.begin == end, "nothing is left out");
    fuzz_require(between_characters(text, piece.begin) && between_characters(text, piece.end), "characters stay whole");
    end = piece.end;
  }
  fuzz_require(removes || end == text.size(), "nothing is left out at the end");
}

void split(const PreTokenizer& splitter, std::string_view text, bool removes) {
  PieceList first, second;
  const Status status = splitter.split(text, true, &first), again = splitter.split(text, true, &second);
  fuzz_require(status.ok() == again.ok(), "split alike each time");
  if (!status.ok()) {
    fuzz_require(!status.message().empty(), "an error says what is wrong");
    return;
  }
  check(first, text, removes);
  const auto same = [](TextRange a, TextRange b) { return a.begin == b.begin && a.end == b.end; };
  fuzz_require(std::equal(first.pieces.begin(), first.pieces.end(), second.pieces.begin(), second.pieces.end(), same),
               "the same pieces each time");
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace quire;
  const auto parts = split_documents({reinterpret_cast<const char*>(bytes), size}, 3);
  const PreTokenizerStep step = step_of(parts[0], parts[1]);
  const auto splitter = PreTokenizer::create({step});
  if (!splitter.ok()) {
    fuzz_require(!splitter.status().message().empty(), "an error says what is wrong");
    return 0;
  }
  const std::string text = repair_utf8(std::string_view(parts[2]).substr(0, kMostTextBytes));
  split(*splitter, text, step.behavior == SplitBehavior::kRemoved);
  return 0;
}
