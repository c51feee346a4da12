#include "engine/answer_text.h"

namespace quire {

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
