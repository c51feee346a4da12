// src/jinja/ interprets the Jinja of chat templates, within bounds (limits.h): source -> lexer.h -> parser.h -> compiler.h
// -> interpreter.h -> text whose every byte remembers who wrote it (text.h).
//
// This is who may have. Plain data, any thread.
#pragma once

#include <cstdint>

namespace quire {

// In order of trust: what several wrote together is the word of the last of them in this list.
enum class Author : uint8_t {
  kTemplate,  // the chat template and what the model's own configuration gives it
  kModel,     // an earlier answer, which the caller hands back
  kCaller,    // everything else
};

}  // namespace quire
