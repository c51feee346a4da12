#include "engine/answer_text.h"

#include <utility>

namespace quire {

Result<AnswerText> AnswerText::create(const Tokenizer& tokenizer, std::span<const std::string> stops) {
  QUIRE_ASSIGN_OR_RETURN(StopMatcher matcher, StopMatcher::create(stops));
  return AnswerText(tokenizer, std::move(matcher));
}

bool AnswerText::push(int32_t id, std::string& released, bool may_stop) {
  const std::string text = detokenizer_.push(id);
  if (may_stop) return stops_.feed(text, released);
  released += text;
  return false;
}

void AnswerText::finish(std::string& released) {
  if (stopped() || stops_.feed(detokenizer_.finish(), released)) return;
  stops_.finish(released);
}

}  // namespace quire
