#include "text/detokenizer.h"

namespace quire {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool render_special)
    : tokenizer_(&tokenizer), render_special_(render_special), repair_(tokenizer.replaces_each_bad_byte()) {}

std::string Detokenizer::push(int32_t id) {
  return trim_start(repair_.push(tokenizer_->token_bytes(id, render_special_)));
}

std::string Detokenizer::finish() {
  std::string text = trim_start(repair_.finish());
  at_start_ = true;
  return text;
}

std::string Detokenizer::trim_start(std::string text) {
  if (!at_start_ || text.empty()) return text;
  at_start_ = false;
  if (tokenizer_->strips_leading_space() && text.front() == ' ') text.erase(0, 1);
  return text;
}

}  // namespace quire
