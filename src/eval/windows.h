// A text cut into the windows that models are judged on.
//
// Follows llama.cpp's perplexity tool, so that figures can be compared: the stream of tokens is cut into windows of
// `window` tokens, what is left over is not read; where the tokenizer adds BOS it replaces the first token of every
// window; and only tokens after the middle are scored, each of which has at least window / 2 tokens before it.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace quire {

class EvalText {
 public:
  // `name` is what messages call the text. At most `max_tokens` tokens of it are read; 0: all. Fails on text that is not
  // UTF-8 or shorter than one window, and on a window below 4 or not even.
  static Result<EvalText> create(std::string_view name, std::string_view text, const Tokenizer& tokenizer,
                                 int64_t window, int64_t max_tokens);
  // The same from tokens; `bos` replaces the first of every window unless it is -1.
  static Result<EvalText> from_tokens(std::string_view name, std::vector<int32_t> tokens, int32_t bos, int64_t window,
                                      int64_t max_tokens);

  // Scores the tokens of first halves too, which have less before them: twice the tokens for the same work, and no longer
  // what llama.cpp's tool prints.
  void score_all() { first_row_ = 0; }

  int64_t window() const { return window_; }
  int64_t windows() const { return static_cast<int64_t>(tokens_.size()) / window_; }
  int64_t tokens() const { return static_cast<int64_t>(tokens_.size()); }  // in windows
  int64_t text_tokens() const { return text_tokens_; }                     // of the whole text
  std::span<const int32_t> tokens_of(int64_t index) const {
    return std::span(tokens_).subspan(static_cast<size_t>(index * window_), static_cast<size_t>(window_));
  }

  // Rows of a window whose logits are compared with the token after them: [first_row(), window() - 1).
  int64_t first_row() const { return first_row_; }
  int64_t scored_per_window() const { return window_ - 1 - first_row(); }

 private:
  int64_t window_ = 0;
  int64_t first_row_ = 0;
  int64_t text_tokens_ = 0;
  std::vector<int32_t> tokens_;  // of all windows, BOS in place
};

}  // namespace quire
