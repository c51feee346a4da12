#include "unicode/utf8.h"

#include <cstring>

namespace quire {
namespace {

// What may follow a lead byte: how many bytes, and the range of the first of them (Unicode 15, table 3-7).
struct LeadByte {
  uint32_t length = 0;  // 0: no lead byte
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
};

LeadByte lead_byte(unsigned char b) {
  if (b < 0x80) return {1};
  if (b < 0xC2) return {0};
  if (b < 0xE0) return {2};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// Bytes at the start of `text` that are ASCII, in steps of eight.
size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  return i;
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const LeadByte lead = lead_byte(byte(0));
  if (lead.length == 0) return {Utf8Step::Kind::kIllFormed, 1, 0};
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Step::Kind::kUnfinished, i, 0};
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::kIllFormed, i, 0};
  }
  return {Utf8Step::Kind::kValid, lead.length, utf8_decode(text.data())};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) break;
    const Utf8Step step = utf8_step(text);
    if (step.kind != Utf8Step::Kind::kValid) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

Status check_utf8(std::string_view name, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::kValid) {
      return invalid_argument(std::string(name) + ": not UTF-8 at byte " + std::to_string(at) +
                              "; convert it, for example with iconv");
    }
    at += step.length;
  }
  return {};
}

std::string repair_utf8(std::string_view text) {
  Utf8Repair repair;
  std::string out = repair.push(text);
  out += repair.finish();
  return out;
}

void append_utf8(char32_t c, std::string* out) {
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string Utf8Repair::push(std::string_view bytes) {
  std::string joined;
  if (!held_.empty()) {
    joined = std::move(held_);
    joined += bytes;
    bytes = joined;
    held_.clear();
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    if (step.kind == Utf8Step::Kind::kUnfinished) {
      held_ = bytes;
      break;
    }
    if (step.kind == Utf8Step::Kind::kValid) {
      out += bytes.substr(0, step.length);
    } else {
      replace(step.length, &out);
    }
    bytes.remove_prefix(step.length);
  }
  return out;
}

std::string Utf8Repair::finish() {
  std::string out;
  if (!held_.empty()) replace(static_cast<uint32_t>(held_.size()), &out);
  held_.clear();
  return out;
}

void Utf8Repair::replace(uint32_t length, std::string* out) const {
  for (uint32_t i = 0; i < (each_byte_ ? length : 1); ++i) *out += kReplacementCharacter;
}

}  // namespace quire
