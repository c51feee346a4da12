// How vocabularies write single bytes.
//
// GPT-2's printable stand-ins for bytes: 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF are themselves, the other 68 bytes are
// U+0100 onwards in order (the space is U+0120). Byte-level vocabularies are written in this alphabet.
// Source: openai/gpt-2, src/encoder.py, bytes_to_unicode.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quire {

// The code point that stands for `byte`.
char32_t byte_to_stand_in(uint8_t byte);

// `bytes` in the alphabet, as UTF-8.
std::string bytes_to_stand_ins(std::string_view bytes);

// The bytes that the UTF-8 text `stand_ins` stands for; a text with a character outside the alphabet stands for itself.
std::string stand_ins_to_bytes(std::string_view stand_ins);

// SentencePiece's spelling: "<0xE4>" is the byte E4, in either case; anything else is no byte token.
std::optional<char> byte_token(std::string_view text);

}  // namespace quire
