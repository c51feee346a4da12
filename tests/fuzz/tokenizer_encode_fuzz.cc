// Any text over small vocabularies of every kind: it is encoded; decoding gives the text again; plain text never becomes a
// control token, nor does what a caller wrote within a chat, while what the template wrote does.
//
// Input: a letter that names the vocabulary, a letter that says where in a chat callers' words lie, then the text.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fuzz/documents.h"
#include "text/detokenizer.h"
#include "text/splitter.h"
#include "text/test_specs.h"
#include "text/tokenizer.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

using testing_specs::add_merges;
using testing_specs::add_special;
using testing_specs::byte_level_spec;
using testing_specs::score_spec;

struct Subject {
  std::unique_ptr<Tokenizer> tokenizer;
  std::set<int32_t> control;
  std::vector<std::string> control_texts;
  bool spaces_by_mark = false;  // U+2581 is decoded to a space
};

Subject subject_of(TokenizerSpec spec, bool spaces_by_mark) {
  Subject subject;
  subject.spaces_by_mark = spaces_by_mark;
  for (const AddedToken& token : spec.added_tokens) {
    if (!token.special) continue;
    subject.control.insert(token.id);
    subject.control_texts.push_back(token.text);
  }
  auto made = Tokenizer::create(std::move(spec));
  fuzz_require(made.ok(), made.status().message());
  subject.tokenizer = std::move(*made);
  return subject;
}

TokenizerSpec byte_spec(std::string_view pattern) {
  TokenizerSpec spec = byte_level_spec();
  add_merges({{"a", "b"},
              {"ab", "c"},
              {"\u0120", "a"},
              {"\u0120a", "b"},
              {"a", "a"},
              {"aa", "aa"},
              {"\u00e4", "\u00b8"},
              {"<", "|"},
              {"1", "2"}},
             &spec);
  add_special("<|im_start|>", &spec);
  add_special("<|im_end|>", &spec);
  add_special("<|", &spec);
  if (!pattern.empty()) {
    PreTokenizerStep step;
    step.pattern = pattern;
    spec.pre_tokenizer = {step};
  }
  return spec;
}

TokenizerSpec piece_spec() {
  return score_spec({"\u2581", "a", "b", "c", "ab", "abc",
                     "\u2581"
                     "a",
                     "\u2581"
                     "ab",
                     "\u4e2d", "\u2581\u2581", "aa", "aaaa", "<", "s", ">"});
}

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = [] {
    std::vector<Subject> made;
    made.push_back(subject_of(byte_spec(""), false));
    made.push_back(subject_of(byte_spec(kGpt2Pattern), false));
    made.push_back(subject_of(byte_spec(kLlama3Pattern), false));
    made.push_back(subject_of(byte_spec(R"(\p{N}{1,3}|[^\s]+|\s+)"), false));
    made.push_back(subject_of(piece_spec(), true));
    TokenizerSpec unsure = piece_spec();
    unsure.ignore_merges = true;
    made.push_back(subject_of(std::move(unsure), true));
    return made;
  }();
  return all;
}

std::vector<int32_t> encoded(const Subject& subject, std::string_view text) {
  const auto ids = subject.tokenizer->encode(text, {});
  fuzz_require(ids.ok(), "any text is encoded: " + ids.status().message());
  return *ids;
}

std::string spaces_for_marks(std::string text) {
  for (size_t at = 0; (at = text.find(testing_specs::kSpaceMark, at)) != std::string::npos; ++at)
    text.replace(at, testing_specs::kSpaceMark.size(), " ");
  return text;
}

void check_plain(const Subject& subject, std::string_view text) {
  const std::vector<int32_t> ids = encoded(subject, text);
  fuzz_require(ids == encoded(subject, text), "the same ids each time");
  for (const int32_t id : ids) {
    fuzz_require(id >= 0 && id < subject.tokenizer->vocab_size(), "ids are of the vocabulary");
    fuzz_require(!subject.control.contains(id), "plain text is no control token");
  }
  const std::string repaired = repair_utf8(text);
  const std::string back = subject.tokenizer->decode(ids);
  fuzz_require(back == (subject.spaces_by_mark ? spaces_for_marks(repaired) : repaired),
               "decoding gives the text again");
  Detokenizer detokenizer(*subject.tokenizer);
  std::string streamed;
  for (const int32_t id : ids) streamed += detokenizer.push(id);
  fuzz_require(streamed + detokenizer.finish() == back, "token by token as at once");
}

// Spans of `step` bytes, by turns the caller's and the template's.
MarkedText chat_of(std::string_view text, size_t step) {
  MarkedText chat;
  chat.text = text;
  for (size_t begin = 0; begin < text.size(); begin += step) {
    chat.spans.push_back(
        {begin, std::min(begin + step, text.size()), (begin / step) % 2 == 1 ? Author::kTemplate : Author::kCaller});
  }
  return chat;
}

// How often the template spells a control token. No more may be found.
size_t spelled_by_template(const Subject& subject, const MarkedText& chat) {
  size_t count = 0;
  for (const auto& span : chat.spans) {
    if (span.author != Author::kTemplate) continue;
    const std::string part = chat.text.substr(span.begin, span.end - span.begin);
    for (const std::string& token : subject.control_texts) {
      for (size_t at = 0; (at = part.find(token, at)) != std::string::npos; ++at) ++count;
    }
  }
  return count;
}

void check_chat(const Subject& subject, const MarkedText& chat) {
  const auto ids = subject.tokenizer->encode_chat(chat);
  fuzz_require(ids.ok(), "any chat is encoded: " + ids.status().message());
  const auto control =
      std::count_if(ids->begin(), ids->end(), [&](int32_t id) { return subject.control.contains(id); });
  const size_t begin_of_text = subject.tokenizer->adds_bos() ? 1 : 0;
  fuzz_require(static_cast<size_t>(control) <= spelled_by_template(subject, chat) + begin_of_text,
               "control tokens of a chat are the template's");
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace quire;
  if (size < 2) return 0;
  const Subject& subject = subjects()[bytes[0] % subjects().size()];
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  check_plain(subject, text);
  check_chat(subject, chat_of(text, bytes[1] % 32u + 1));
  return 0;
}
