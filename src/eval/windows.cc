#include "eval/windows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr int64_t kMinWindow = 4;

}  // namespace

Result<EvalText> EvalText::create(std::string_view name, std::string_view text, const Tokenizer& tokenizer,
                                  int64_t window, int64_t max_tokens) {
  QUIRE_RETURN_IF_ERROR(check_utf8(name, text));
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer.encode(text, {.add_special = true}));
  return from_tokens(name, std::move(tokens), tokenizer.adds_bos() ? tokenizer.bos_id() : -1, window, max_tokens);
}

Result<EvalText> EvalText::from_tokens(std::string_view name, std::vector<int32_t> tokens, int32_t bos, int64_t window,
                                       int64_t max_tokens) {
  if (window < kMinWindow || window % 2 != 0) {
    return invalid_argument("a window of " + std::to_string(window) + " tokens: give an even number from " +
                            std::to_string(kMinWindow) + " on");
  }
  EvalText result;
  result.window_ = window;
  result.first_row_ = window / 2;
  result.text_tokens_ = static_cast<int64_t>(tokens.size());
  const int64_t read = max_tokens > 0 ? std::min(max_tokens, result.text_tokens_) : result.text_tokens_;
  if (read < window) {
    return invalid_argument(std::string(name) + ": " + std::to_string(read) + " of its " +
                            std::to_string(result.text_tokens_) + " tokens to read, and a window takes " +
                            std::to_string(window) + ": give a longer text or a smaller window");
  }
  tokens.resize(static_cast<size_t>(read / window * window));
  for (size_t first = 0; bos >= 0 && first < tokens.size(); first += static_cast<size_t>(window)) tokens[first] = bos;
  result.tokens_ = std::move(tokens);
  return result;
}

}  // namespace quire
