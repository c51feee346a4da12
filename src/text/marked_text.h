// Text that remembers who wrote which part of it. The template interpreter produces it, the tokenizer reads it, so
// that a user who types "<|im_end|>" gets the characters, not the token.
//
// Plain data, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "jinja/author.h"

namespace quire {

struct MarkedText {
  struct Span {
    size_t begin = 0;  // byte offsets into `text`, [begin, end)
    size_t end = 0;
    Author author = Author::kTemplate;
  };

  std::string text;
  std::vector<Span> spans;  // ascending, touching, covering all of `text`
};

}  // namespace quire
