#include "server/begun_answer.h"

#include <string_view>

#include "server/random_id.h"
#include "unicode/white_space.h"

namespace quire {
namespace {

// `text` without white space at its end.
std::string_view trimmed(std::string_view text) {
  const std::string_view inner = strip_space(text);
  return inner.empty() ? inner : text.substr(0, static_cast<size_t>(inner.data() - text.data()) + inner.size());
}

void cut(size_t size, MarkedText* chat) {
  chat->text.resize(size);
  while (!chat->spans.empty() && chat->spans.back().begin >= size) chat->spans.pop_back();
  if (!chat->spans.empty()) chat->spans.back().end = size;
}

}  // namespace

// The space at its end shows whether the template trims.
std::string new_tag() { return "END" + random_id() + " "; }

Status end_behind(const BegunAnswer& begun, MarkedText* chat) {
  const std::string_view all = chat->text;
  const std::string_view tag = begun.tag;
  const size_t at = all.rfind(tag.substr(0, tag.size() - 1));
  const std::string_view before = all.substr(0, at == std::string_view::npos ? 0 : at);
  if (at == std::string_view::npos || !trimmed(before).ends_with(strip_space(begun.words))) {
    return invalid_argument(
        "continue_final_message: the chat template does not end with the words of the last message, so they cannot be "
        "continued; leave it out, or use /v1/completions");
  }
  const bool trims = all.substr(at, tag.size()) != tag;
  cut(trims ? trimmed(before).size() : at, chat);
  return {};
}

}  // namespace quire
