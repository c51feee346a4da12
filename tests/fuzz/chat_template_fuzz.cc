// Any text as a chat template, rendered over any messages: an error that says something, or a text whose spans cover it,
// the same each time. Words of messages never count as the template's.
//
// Input: template, messages, tools and further variables, with "---" between them.
#include <string>

#include "fuzz/documents.h"
#include "text/chat_template.h"

namespace quire {
namespace {

// A character that no template can make out of nothing, unless it spells it.
constexpr std::string_view kForeign = "\u2603";

bool can_spell_anything(std::string_view source) {
  for (const std::string_view way : {std::string_view("\\"), std::string_view("%c"), kForeign}) {
    if (source.find(way) != std::string_view::npos) return true;
  }
  return source.find("format") != std::string_view::npos;
}

void check_spans(const MarkedText& text) {
  size_t end = 0;
  for (const auto& span : text.spans) {
    fuzz_require(span.begin == end && span.end > span.begin, "spans touch");
    end = span.end;
  }
  fuzz_require(end == text.text.size(), "spans cover the text");
}

void check_origin(const MarkedText& text) {
  for (const auto& span : text.spans) {
    const std::string_view part(text.text.data() + span.begin, span.end - span.begin);
    fuzz_require(span.author != Author::kTemplate || part.find(kForeign) == std::string_view::npos,
                 "what a message says is not the template's");
  }
}

bool same(const MarkedText& a, const MarkedText& b) {
  return a.text == b.text &&
         std::equal(a.spans.begin(), a.spans.end(), b.spans.begin(), b.spans.end(), [](const auto& x, const auto& y) {
           return x.begin == y.begin && x.end == y.end && x.author == y.author;
         });
}

void render(const ChatTemplate& chat_template, const std::string& source, const ChatInput& input) {
  const auto first = chat_template.render(input), second = chat_template.render(input);
  fuzz_require(first.ok() == second.ok(), "rendered alike each time");
  if (!first.ok()) {
    fuzz_require(!first.status().message().empty(), "an error says what is wrong");
    fuzz_require(first.status().message() == second.status().message(), "the same error each time");
    return;
  }
  fuzz_require(same(*first, *second), "the same text each time");
  check_spans(*first);
  if (!can_spell_anything(source)) check_origin(*first);
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto parts = quire::split_documents({reinterpret_cast<const char*>(bytes), size}, 4);
  const auto chat_template = quire::ChatTemplate::parse(parts[0]);
  if (!chat_template.ok()) {
    quire::fuzz_require(!chat_template.status().message().empty(), "an error says what is wrong");
    return 0;
  }
  const quire::ChatInput input = {.messages = parts[1].empty() ? "[]" : parts[1],
                                  .tools = parts[2],
                                  .kwargs = parts[3].empty() ? "{}" : parts[3],
                                  .now = 1'700'000'000};
  quire::render(*chat_template, parts[0], input);
  return 0;
}
