#include "vocab/tokenizer_forms.h"

#include <charconv>

#include "text/byte_alphabet.h"
#include "text/pre_tokenizer.h"
#include "unicode/utf8.h"
#include "vocab/tokenizer_source.h"

namespace quire {

Result<TokenizerSpec> checked_tokenizer_spec(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(checkpoint));
  return tokenizer_spec_of(checkpoint);
}

Status check_control_pieces(const TokenizerSpec& spec, const std::string& where) {
  if (!spec.byte_level || !spec.ignore_merges) return {};
  QUIRE_ASSIGN_OR_RETURN(const PreTokenizer pre_tokenizer, PreTokenizer::create(spec.pre_tokenizer));
  PieceList list;
  for (const AddedToken& token : spec.added_tokens) {
    const std::string bytes = stand_ins_to_bytes(token.text);
    if (!token.special || bytes_to_stand_ins(bytes) != token.text || !is_valid_utf8(bytes)) continue;
    QUIRE_RETURN_IF_ERROR(pre_tokenizer.split(bytes, false, &list));
    if (list.pieces.size() == 1) {
      return unsupported(where + ": the control token " + std::to_string(token.id) + " ('" + token.text +
                         "') is spelled like a word, which one format reads as the token and the other does not");
    }
  }
  return {};
}

bool has_all_bytes(const TokenizerSpec& spec) {
  int count = 0;
  for (int32_t id = 0; id < spec.vocabulary.size(); ++id) {
    const std::string_view text = spec.vocabulary.text(id);
    count += byte_token(text) && spec.vocabulary.find(text) == id;
  }
  return count == 256;
}

Status check_dropped_characters(const TokenizerSpec& spec, const std::string& where) {
  if (spec.unknown_id >= 0 || has_all_bytes(spec)) return {};
  return unsupported(
      where +
      " lacks some of the byte tokens <0x00> to <0xFF> and there is no unknown token, so characters "
      "without a token are dropped; what stands beside them merges in tokenizer.json and does not in GGUF");
}

std::string spelled_out(std::string_view pattern) {
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    const size_t length = pattern[at] == '\\' && at + 1 < pattern.size() ? 2 : 1;
    const size_t close = pattern.substr(at).starts_with("\\x{") ? pattern.find('}', at) : std::string_view::npos;
    uint32_t code_point = 0;
    if (close != std::string_view::npos) {
      const char* end = pattern.data() + close;
      const auto parsed = std::from_chars(pattern.data() + at + 3, end, code_point, 16);
      if (parsed.ptr != end || parsed.ec != std::errc()) code_point = 0;
    }
    const bool is_character =
        code_point >= 0x80 && code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    if (is_character) {
      append_utf8(code_point, &out);
      at = close + 1;
    } else {
      out += pattern.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace quire
