#include <algorithm>
#include <array>

#include "text/byte_alphabet.h"
#include "unicode/utf8.h"
#include "vocab/gguf_tokenizer.h"
#include "vocab/hf_tokenizer.h"
#include "vocab/piece_merges.h"
#include "vocab/tokenizer_export.h"
#include "vocab/tokenizer_forms.h"

namespace quire {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr uint64_t kNoToken = 0xFFFFFFFF;

// A name of tokenizer.ggml.pre for each way of cutting; other names stand for the same ways.
constexpr std::array<std::string_view, 9> kPreNames = {
    "gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "falcon", "deepseek-v3", "deepseek-coder", "deepseek-llm"};

enum TokenType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

void set(GgufMetadata* keys, std::string_view name, MetaValue value) {
  (*keys)[std::string(kPrefix) + std::string(name)] = std::move(value);
}

// GGUF has no flags for added tokens, and looks for all of them in the text as it is given.
Status check_added_tokens(const TokenizerSpec& spec) {
  const bool any_raw = std::any_of(spec.added_tokens.begin(), spec.added_tokens.end(),
                                   [](const AddedToken& token) { return !token.normalized; });
  for (const AddedToken& token : spec.added_tokens) {
    const char* flag = token.lstrip                                                ? "lstrip"
                       : token.rstrip                                              ? "rstrip"
                       : token.single_word                                         ? "single_word"
                       : token.normalized && (any_raw || !spec.normalizer.empty()) ? "normalized"
                                                                                   : nullptr;
    if (flag != nullptr) {
      return unsupported("tokenizer.json: '" + std::string(flag) + "' of the added token " + std::to_string(token.id) +
                         " ('" + token.text + "') has no form in GGUF");
    }
  }
  return {};
}

bool same_step(const PreTokenizerStep& a, const PreTokenizerStep& b) {
  return a.kind == b.kind && spelled_out(a.pattern) == spelled_out(b.pattern) && a.behavior == b.behavior &&
         a.invert == b.invert;
}

bool same_step(const NormalizerStep& a, const NormalizerStep& b) {
  return a.kind == b.kind && a.pattern == b.pattern && a.content == b.content;
}

template <typename Step>
bool same_steps(const std::vector<Step>& a, const std::vector<Step>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Step& x, const Step& y) { return same_step(x, y); });
}

// For the message that no name fits.
std::string description(const TokenizerSpec& spec) {
  std::string text = std::to_string(spec.normalizer.size()) + " normalizer steps, ";
  for (const PreTokenizerStep& step : spec.pre_tokenizer) {
    text += step.pattern.empty() ? "a step without pattern, " : "the pattern '" + step.pattern + "', ";
  }
  return text + (spec.ignore_merges ? "ignore_merges" : "no ignore_merges");
}

Result<std::string_view> pre_name(const TokenizerSpec& spec) {
  for (const std::string_view name : kPreNames) {
    QUIRE_ASSIGN_OR_RETURN(const GgufPreTokenizer known, gguf_pre_tokenizer(name));
    if (known.ignore_merges == spec.ignore_merges && same_steps(known.normalizer, spec.normalizer) &&
        same_steps(known.steps, spec.pre_tokenizer)) {
      return name;
    }
  }
  return unsupported("tokenizer.json: no name of tokenizer.ggml.pre stands for its normalizer and pre_tokenizer (" +
                     description(spec) + ")");
}

// Bytes without a token are dropped when GGUF is read, and become the unknown token here.
Status check_bytes(const TokenizerSpec& spec) {
  if (spec.unknown_id < 0) return {};
  for (int byte = 0; byte < 256; ++byte) {
    std::string stand_in;
    append_utf8(byte_to_stand_in(static_cast<uint8_t>(byte)), &stand_in);
    if (spec.vocabulary.find(stand_in) < 0) {
      return unsupported("tokenizer.json: model.vocab has no token for the byte " + std::to_string(byte) +
                         ", and GGUF cannot say that model.unk_token takes its place");
    }
  }
  return {};
}

Status add_byte_level(const TokenizerSpec& spec, GgufMetadata* keys) {
  if (spec.decoder != DecoderKind::kByteLevel) {
    return unsupported("tokenizer.json: a ByteLevel pre_tokenizer without a ByteLevel decoder has no form in GGUF");
  }
  QUIRE_RETURN_IF_ERROR(check_bytes(spec));
  QUIRE_RETURN_IF_ERROR(check_control_pieces(spec, "tokenizer.json: added_tokens"));
  QUIRE_ASSIGN_OR_RETURN(const std::string_view pre, pre_name(spec));
  std::vector<std::string> lines;
  lines.reserve(spec.merges.size());
  for (const Merge& merge : spec.merges) {
    const std::string_view left = spec.vocabulary.text(merge.left), right = spec.vocabulary.text(merge.right);
    if (left.find(' ', 1) != std::string_view::npos) {
      return unsupported("tokenizer.json: entry " + std::to_string(lines.size()) +
                         " of model.merges has a space in its left part, which parts the two in GGUF");
    }
    lines.push_back(std::string(left).append(" ").append(right));
  }
  set(keys, "model", std::string("gpt2"));
  set(keys, "pre", std::string(pre));
  set(keys, "merges", std::move(lines));
  return {};
}

Status add_sentencepiece(const TokenizerSpec& spec, GgufMetadata* keys) {
  if (!spec.byte_fallback || spec.ignore_merges || spec.decoder != DecoderKind::kPieces ||
      !(spec.fuse_unknown || has_all_bytes(spec))) {
    return unsupported(
        "tokenizer.json: its model merges characters, which GGUF has only with byte_fallback, fuse_unk, no "
        "ignore_merges "
        "and a decoder that ends in ByteFallback, Fuse");
  }
  QUIRE_RETURN_IF_ERROR(check_dropped_characters(spec, "tokenizer.json: model.vocab"));
  const NormalizerStep prepend{NormalizerStep::Kind::kPrepend, "", std::string(kSpaceMark)};
  const NormalizerStep replace{NormalizerStep::Kind::kReplace, " ", std::string(kSpaceMark)};
  const bool prefix = same_steps(spec.normalizer, std::vector<NormalizerStep>{prepend, replace});
  if (!prefix && !same_steps(spec.normalizer, std::vector<NormalizerStep>{replace})) {
    return unsupported(
        "tokenizer.json: its normalizer is not one that GGUF has for pieces with scores: spaces become U+2581, with or "
        "without one more before each text between control tokens (a Metaspace pre_tokenizer adds it elsewhere)");
  }
  if (prefix != spec.strips_leading_space) {
    return unsupported("tokenizer.json: in GGUF the decoder strips a leading space if and only if one is prepended");
  }
  // Splitting at spaces does nothing once they are replaced.
  const bool splits = std::any_of(spec.pre_tokenizer.begin(), spec.pre_tokenizer.end(), [](const PreTokenizerStep& s) {
    return s.kind != PreTokenizerStep::Kind::kLiteral || s.pattern != " " || s.invert;
  });
  if (splits) return unsupported("tokenizer.json: pieces with scores have no pre_tokenizer in GGUF");
  QUIRE_ASSIGN_OR_RETURN(const std::vector<float> scores, scores_from_merges(spec));
  set(keys, "model", std::string("llama"));
  set(keys, "pre", std::string("default"));
  set(keys, "scores", std::vector<double>(scores.begin(), scores.end()));
  set(keys, "add_space_prefix", prefix);
  return {};
}

// Leaves out the added tokens that the embedding has no row for, such as special tokens that only a tokenizer's class
// knows: in a GGUF file the list of tokens is as long as the embedding, and no model can be given them.
void drop_rowless(int64_t rows, TokenizerSpec* spec) {
  if (rows == 0) return;
  std::erase_if(spec->added_tokens, [&](const AddedToken& token) { return token.id >= rows; });
  std::erase_if(spec->end_of_generation_ids, [&](int32_t id) { return id >= rows; });
}

// Texts and types of all tokens, and what pads the list to the embedding's rows.
Status add_tokens(const TokenizerSpec& spec, int64_t rows, GgufMetadata* keys) {
  const auto size =
      static_cast<int32_t>(rows == 0 ? spec.vocabulary.size() : std::min<int64_t>(spec.vocabulary.size(), rows));
  for (int32_t id = size; id < spec.vocabulary.size(); ++id) {
    if (spec.vocabulary.find(spec.vocabulary.text(id)) != id) continue;  // was an added token
    return corrupt("tokenizer.json names the id " + std::to_string(id) + ", but config.json's vocab_size is " +
                   std::to_string(rows));
  }
  const auto count = static_cast<size_t>(std::max<int64_t>(size, rows));
  std::vector<std::string> tokens(count);
  std::vector<int64_t> types(count, kUnused);
  for (int32_t id = 0; id < size; ++id) {
    const auto i = static_cast<size_t>(id);
    tokens[i] = spec.vocabulary.text(id);
    if (!tokens[i].empty()) types[i] = !spec.byte_level && byte_token(tokens[i]) ? kByte : kNormal;
  }
  for (const AddedToken& token : spec.added_tokens) {
    const auto i = static_cast<size_t>(token.id);
    types[i] = !token.special ? kUserDefined : token.id == spec.unknown_id && !spec.byte_level ? kUnknown : kControl;
  }
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i].empty()) tokens[i] = "[PAD" + std::to_string(i) + "]";
  }
  const auto scores = keys->find(std::string(kPrefix) + "scores");
  if (scores != keys->end()) std::get<std::vector<double>>(scores->second).resize(count);
  set(keys, "tokens", std::move(tokens));
  set(keys, "token_type", std::move(types));
  return {};
}

int32_t id_of(const TokenizerSpec& spec, std::string_view text) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.text == text) return token.id;
  }
  return spec.vocabulary.find(text);
}

// Ids of special tokens. Readers of pieces with scores take 1, 2 and 0 for BOS, EOS and unknown where no key says
// otherwise, so those are always written.
Status add_special_tokens(const Checkpoint& hf, const TokenizerSpec& spec, GgufMetadata* keys) {
  if (!spec.byte_level) {
    for (const char* name : {"bos_token_id", "eos_token_id"}) set(keys, name, kNoToken);
  }
  QUIRE_ASSIGN_OR_RETURN(const auto specials, hf_special_token_texts(hf));
  for (const auto& [name, text] : specials) {
    const std::string_view key = gguf_special_key(name);
    const int32_t id = id_of(spec, text);
    if (key.empty() || id < 0) continue;  // no key in GGUF, or no row in the embedding
    set(keys, key, static_cast<uint64_t>(id));
  }
  if (!spec.byte_level) {
    set(keys, "unknown_token_id", spec.unknown_id >= 0 ? static_cast<uint64_t>(spec.unknown_id) : kNoToken);
  }
  return {};
}

// The id that a key of add_special_tokens gave; -1: none.
int32_t written_id(const GgufMetadata& keys, std::string_view name) {
  const auto found = keys.find(std::string(kPrefix) + std::string(name));
  const uint64_t id = found != keys.end() ? std::get<uint64_t>(found->second) : kNoToken;
  return id == kNoToken ? -1 : static_cast<int32_t>(id);
}

Status add_template(const TokenizerSpec& spec, GgufMetadata* keys) {
  const auto add = [keys](const std::vector<int32_t>& ids, const char* flag, const char* token) -> Status {
    const int32_t id = written_id(*keys, token);
    if (!ids.empty() && (ids.size() > 1 || ids[0] != id)) {
      return unsupported("tokenizer.json: the post_processor adds token " + std::to_string(ids[0]) +
                         (ids.size() > 1 ? " and others" : "") + "; GGUF can add only the " + token + ", " +
                         std::to_string(id));
    }
    set(keys, flag, !ids.empty());
    return {};
  };
  QUIRE_RETURN_IF_ERROR(add(spec.prefix_ids, "add_bos_token", "bos_token_id"));
  return add(spec.suffix_ids, "add_eos_token", "eos_token_id");
}

// Ends beyond EOS: those that readers know by their text need no key; GGUF has keys for two more.
Status add_ends(const TokenizerSpec& spec, GgufMetadata* keys) {
  std::vector<std::string_view> free = {"eot_token_id", "eom_token_id"};
  std::vector<int32_t> known = {written_id(*keys, "eos_token_id")};
  if (known[0] < 0) free.insert(free.begin(), "eos_token_id");
  for (const AddedToken& token : spec.added_tokens) {
    if (token.special && gguf_ends_generation(token.text)) known.push_back(token.id);
  }
  for (const int32_t id : spec.end_of_generation_ids) {
    if (id < 0 || id >= spec.vocabulary.size()) {
      return corrupt("the eos_token_id " + std::to_string(id) + " is outside the vocabulary");
    }
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    if (free.empty()) {
      return unsupported("token " + std::to_string(id) + " of generation_config.json's eos_token_id is one too many: " +
                         "GGUF has keys for three that it does not know by their text");
    }
    set(keys, free.front(), static_cast<uint64_t>(id));
    free.erase(free.begin());
    known.push_back(id);
  }
  return {};
}

Status add_chat_templates(const Checkpoint& hf, GgufMetadata* keys) {
  QUIRE_ASSIGN_OR_RETURN(const auto main, hf_chat_template(hf));
  if (main) (*keys)["tokenizer.chat_template"] = *main;
  QUIRE_ASSIGN_OR_RETURN(const auto others, hf_named_chat_templates(hf));
  std::vector<std::string> names;
  for (const auto& [name, source] : others) {
    (*keys)["tokenizer.chat_template." + name] = source;
    names.push_back(name);
  }
  if (!names.empty()) (*keys)["tokenizer.chat_templates"] = std::move(names);
  return {};
}

Status add_keys(const Checkpoint& hf, TokenizerSpec spec, GgufMetadata* keys) {
  drop_rowless(hf.hparams().vocab_size, &spec);
  QUIRE_RETURN_IF_ERROR(check_added_tokens(spec));
  QUIRE_RETURN_IF_ERROR(spec.byte_level ? add_byte_level(spec, keys) : add_sentencepiece(spec, keys));
  QUIRE_RETURN_IF_ERROR(add_tokens(spec, hf.hparams().vocab_size, keys));
  QUIRE_RETURN_IF_ERROR(add_special_tokens(hf, spec, keys));
  QUIRE_RETURN_IF_ERROR(add_template(spec, keys));
  QUIRE_RETURN_IF_ERROR(add_ends(spec, keys));
  return add_chat_templates(hf, keys);
}

}  // namespace

Result<GgufMetadata> gguf_tokenizer_metadata(const Checkpoint& hf) {
  if (hf.format().starts_with("GGUF")) return invalid_argument(hf.path() + " is a GGUF file already");
  QUIRE_ASSIGN_OR_RETURN(TokenizerSpec spec, checked_tokenizer_spec(hf));
  GgufMetadata keys;
  const Status status = add_keys(hf, std::move(spec), &keys);
  if (!status.ok()) return Status(status.code(), hf.path() + ": " + status.message());
  return keys;
}

}  // namespace quire
