#include "text/byte_alphabet.h"

#include <array>

#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> stand_in{};
  std::array<int16_t, 0x100 + 68> byte{};  // by code point; -1: none
};

constexpr Alphabet kAlphabet = [] {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  uint16_t next = 0x100;
  for (uint16_t b = 0; b < 256; ++b) {
    alphabet.stand_in[b] = stands_for_itself(b) ? b : next++;
    alphabet.byte[alphabet.stand_in[b]] = static_cast<int16_t>(b);
  }
  return alphabet;
}();

}  // namespace

char32_t byte_to_stand_in(uint8_t byte) { return kAlphabet.stand_in[byte]; }

std::string bytes_to_stand_ins(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) append_utf8(byte_to_stand_in(static_cast<uint8_t>(c)), &out);
  return out;
}

std::string stand_ins_to_bytes(std::string_view stand_ins) {
  std::string out;
  out.reserve(stand_ins.size());
  for (std::string_view rest = stand_ins; !rest.empty();) {
    const Utf8Step step = utf8_step(rest);
    if (step.kind != Utf8Step::Kind::kValid || step.code_point >= kAlphabet.byte.size() ||
        kAlphabet.byte[step.code_point] < 0) {
      return std::string(stand_ins);
    }
    out.push_back(static_cast<char>(kAlphabet.byte[step.code_point]));
    rest.remove_prefix(step.length);
  }
  return out;
}

std::optional<char> byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = value * 16 + digit;
  }
  return static_cast<char>(value);
}

}  // namespace quire
