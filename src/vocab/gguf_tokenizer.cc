#include "vocab/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace quire {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

enum class TokenType { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

// Texts that end a generation wherever a vocabulary has them as control tokens: files name only one EOS.
constexpr std::array<std::string_view, 9> kEndTexts = {"<|eot_id|>",
                                                       "<|im_end|>",
                                                       "<|end|>",
                                                       "<end_of_turn>",
                                                       "<|endoftext|>",
                                                       "<|eom_id|>",
                                                       "</s>",
                                                       "<|end_of_text|>",
                                                       "<\xEF\xBD\x9C"
                                                       "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

// Keys that name a special token, and what chat templates call it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSpecialKeys = {{
    {"bos_token_id", "bos_token"},
    {"eos_token_id", "eos_token"},
    {"unknown_token_id", "unk_token"},
    {"seperator_token_id", "sep_token"},
    {"padding_token_id", "pad_token"},
    {"cls_token_id", "cls_token"},
    {"mask_token_id", "mask_token"},
}};

std::string key_of(std::string_view name) { return std::string(kPrefix) + std::string(name); }

template <typename T>
Result<const T*> optional_key(const Checkpoint& checkpoint, std::string_view name, std::string_view type) {
  const MetaValue* value = checkpoint.meta(key_of(name));
  if (value == nullptr) return static_cast<const T*>(nullptr);
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) return corrupt(key_of(name) + " is not " + std::string(type));
  return typed;
}

Result<bool> flag(const Checkpoint& checkpoint, std::string_view name, bool otherwise) {
  QUIRE_ASSIGN_OR_RETURN(const bool* value, optional_key<bool>(checkpoint, name, "a bool"));
  return value != nullptr ? *value : otherwise;
}

// A token id; `otherwise` when the key is absent. Writers use 0xFFFFFFFF or -1 for "none".
Result<int32_t> id_key(const Checkpoint& checkpoint, std::string_view name, int32_t otherwise) {
  const MetaValue* value = checkpoint.meta(key_of(name));
  if (value == nullptr) return otherwise;
  int64_t id = -1;
  if (const auto* u = std::get_if<uint64_t>(value)) {
    if (*u > std::numeric_limits<uint32_t>::max()) return corrupt(key_of(name) + " is not a token id");
    id = *u == std::numeric_limits<uint32_t>::max() ? -1 : static_cast<int64_t>(*u);
  } else if (const auto* i = std::get_if<int64_t>(value)) {
    id = *i;
  } else {
    return corrupt(key_of(name) + " is not an integer");
  }
  if (id < -1 || id >= Vocabulary::kMaxSize) return corrupt(key_of(name) + " is not a token id: " + std::to_string(id));
  return static_cast<int32_t>(id);
}

Result<std::span<const std::string>> tokens_of(const Checkpoint& checkpoint) {
  QUIRE_ASSIGN_OR_RETURN(const auto* tokens,
                         optional_key<std::vector<std::string>>(checkpoint, "tokens", "an array of strings"));
  if (tokens == nullptr || tokens->empty()) return corrupt("tokenizer.ggml.tokens is missing or empty");
  return std::span<const std::string>(*tokens);
}

// One type a token; all normal when the file does not say.
Result<std::vector<TokenType>> types_of(const Checkpoint& checkpoint, size_t count) {
  std::vector<TokenType> types(count, TokenType::kNormal);
  const MetaValue* value = checkpoint.meta(key_of("token_type"));
  if (value == nullptr) return types;
  const auto read = [&types, count](const auto& numbers) -> Status {
    if (numbers.size() != count) {
      return corrupt("tokenizer.ggml.token_type has " + std::to_string(numbers.size()) + " entries for " +
                     std::to_string(count) + " tokens");
    }
    for (size_t i = 0; i < count; ++i) {
      if (numbers[i] < 0 || numbers[i] > 6) {
        return corrupt("tokenizer.ggml.token_type of token " + std::to_string(i) + " is " + std::to_string(numbers[i]));
      }
      types[i] = static_cast<TokenType>(numbers[i]);
    }
    return {};
  };
  if (const auto* i = std::get_if<std::vector<int64_t>>(value)) {
    QUIRE_RETURN_IF_ERROR(read(*i));
  } else if (const auto* u = std::get_if<std::vector<uint64_t>>(value)) {
    QUIRE_RETURN_IF_ERROR(read(*u));
  } else {
    return corrupt("tokenizer.ggml.token_type is not an array of integers");
  }
  return types;
}

bool is_special(TokenType type) { return type == TokenType::kControl || type == TokenType::kUnknown; }

// Fills vocabulary and added tokens. `hides_special`: the model must never produce a control token by itself.
Status add_tokens(std::span<const std::string> tokens, std::span<const TokenType> types, bool hides_special,
                  TokenizerSpec* spec) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  spec->vocabulary.reserve(tokens.size(), bytes);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const TokenType type = types[i];
    const bool special = is_special(type);
    const bool hidden = special && hides_special;
    QUIRE_RETURN_IF_ERROR(
        spec->vocabulary.add(type == TokenType::kUnused ? std::string_view() : std::string_view(tokens[i]),
                             hidden ? Vocabulary::Lookup::kHidden : Vocabulary::Lookup::kFindable));
    if ((special || type == TokenType::kUserDefined) && !tokens[i].empty()) {
      AddedToken added;
      added.id = static_cast<int32_t>(i);
      added.text = tokens[i];
      added.special = special;
      spec->added_tokens.push_back(std::move(added));
    }
  }
  return {};
}

Status read_merges(const Checkpoint& checkpoint, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto* lines,
                         optional_key<std::vector<std::string>>(checkpoint, "merges", "an array of strings"));
  if (lines == nullptr) return corrupt("tokenizer.ggml.merges is missing");
  spec->merges.reserve(lines->size());
  for (const std::string_view line : *lines) {
    // A token may begin with a space, so the separator is sought from the second byte on.
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos) {
      return corrupt("entry " + std::to_string(spec->merges.size()) + " of tokenizer.ggml.merges is not a pair: '" +
                     std::string(line) + "'");
    }
    const Merge merge{spec->vocabulary.find(line.substr(0, space)), spec->vocabulary.find(line.substr(space + 1))};
    if (merge.left < 0 || merge.right < 0) {
      return corrupt("entry " + std::to_string(spec->merges.size()) +
                     " of tokenizer.ggml.merges joins what is no token: '" + std::string(line) + "'");
    }
    spec->merges.push_back(merge);
  }
  return {};
}

Status read_scores(const Checkpoint& checkpoint, std::span<const TokenType> types, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto* scores,
                         optional_key<std::vector<double>>(checkpoint, "scores", "an array of floats"));
  if (scores == nullptr || scores->size() != types.size()) {
    return corrupt("tokenizer.ggml.scores " + (scores == nullptr
                                                   ? std::string("is missing")
                                                   : "has " + std::to_string(scores->size()) + " entries for " +
                                                         std::to_string(types.size()) + " tokens"));
  }
  spec->scores.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const bool joins = types[i] == TokenType::kNormal || types[i] == TokenType::kUserDefined;
    spec->scores.push_back(joins ? static_cast<float>((*scores)[i]) : kNeverMerged);
  }
  return {};
}

Status read_byte_level(const Checkpoint& checkpoint, TokenizerSpec* spec, bool* adds_bos) {
  QUIRE_ASSIGN_OR_RETURN(const auto* name, optional_key<std::string>(checkpoint, "pre", "a string"));
  // Files of before April 2024 name none. Of Qwen 2 there was only ever one.
  const bool guess = name == nullptr && checkpoint.hparams().architecture == "qwen2";
  const std::string used = name != nullptr ? *name : guess ? "qwen2" : "default";
  QUIRE_ASSIGN_OR_RETURN(GgufPreTokenizer pre, gguf_pre_tokenizer(used));
  if (name == nullptr || used == "default") {
    spec->remarks.push_back("tokenizer.ggml.pre " + std::string(name == nullptr ? "is missing" : "is 'default'") +
                            ": text is split " + (guess ? "as Qwen 2 does" : "by llama.cpp's default rules") +
                            ", which may not be what the model learnt; a newer converter names the right ones");
  }
  QUIRE_ASSIGN_OR_RETURN(const auto tokens, tokens_of(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(const auto types, types_of(checkpoint, tokens.size()));
  QUIRE_RETURN_IF_ERROR(add_tokens(tokens, types, pre.ignore_merges, spec));
  QUIRE_RETURN_IF_ERROR(read_merges(checkpoint, spec));
  spec->model = ModelKind::kMerges;
  spec->byte_level = true;
  spec->ignore_merges = pre.ignore_merges;
  spec->normalizer = std::move(pre.normalizer);
  spec->pre_tokenizer = std::move(pre.steps);
  spec->decoder = DecoderKind::kByteLevel;
  *adds_bos = pre.adds_bos;
  return {};
}

Status read_sentencepiece(const Checkpoint& checkpoint, TokenizerSpec* spec) {
  QUIRE_ASSIGN_OR_RETURN(const auto tokens, tokens_of(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(const auto types, types_of(checkpoint, tokens.size()));
  QUIRE_RETURN_IF_ERROR(add_tokens(tokens, types, true, spec));
  QUIRE_RETURN_IF_ERROR(read_scores(checkpoint, types, spec));
  QUIRE_ASSIGN_OR_RETURN(const bool removes_whitespace, flag(checkpoint, "remove_extra_whitespaces", false));
  if (removes_whitespace) {
    return unsupported(
        "the tokenizer removes extra whitespace (tokenizer.ggml.remove_extra_whitespaces), which quire "
        "does not support");
  }
  QUIRE_ASSIGN_OR_RETURN(const bool prefix, flag(checkpoint, "add_space_prefix", true));
  if (prefix) spec->normalizer.push_back({NormalizerStep::Kind::kPrepend, "", std::string(kSpaceMark)});
  spec->normalizer.push_back({NormalizerStep::Kind::kReplace, " ", std::string(kSpaceMark)});
  spec->model = ModelKind::kScores;
  spec->byte_fallback = true;
  spec->fuse_unknown = true;
  QUIRE_ASSIGN_OR_RETURN(spec->unknown_id, id_key(checkpoint, "unknown_token_id", 0));
  spec->decoder = DecoderKind::kPieces;
  spec->strips_leading_space = prefix;
  return {};
}

void add_end_texts(TokenizerSpec* spec) {
  for (const AddedToken& token : spec->added_tokens) {
    if (token.special && gguf_ends_generation(token.text)) spec->end_of_generation_ids.push_back(token.id);
  }
}

}  // namespace

Result<TokenizerSpec> gguf_tokenizer_spec(const Checkpoint& checkpoint) {
  TokenizerSpec spec;
  QUIRE_ASSIGN_OR_RETURN(const auto* model, optional_key<std::string>(checkpoint, "model", "a string"));
  if (model == nullptr) return corrupt("the file carries no tokenizer (tokenizer.ggml.model)");
  const bool sentencepiece = *model == "llama";
  bool adds_bos = sentencepiece;
  if (sentencepiece) {
    QUIRE_RETURN_IF_ERROR(read_sentencepiece(checkpoint, &spec));
  } else if (*model == "gpt2") {
    QUIRE_RETURN_IF_ERROR(read_byte_level(checkpoint, &spec, &adds_bos));
  } else {
    return unsupported("the tokenizer model '" + *model +
                       "' (tokenizer.ggml.model) is not one that quire knows: it reads "
                       "'gpt2' and 'llama'");
  }

  QUIRE_ASSIGN_OR_RETURN(spec.bos_id, id_key(checkpoint, "bos_token_id", sentencepiece ? 1 : -1));
  QUIRE_ASSIGN_OR_RETURN(const int32_t eos, id_key(checkpoint, "eos_token_id", sentencepiece ? 2 : -1));
  QUIRE_ASSIGN_OR_RETURN(adds_bos, flag(checkpoint, "add_bos_token", adds_bos));
  QUIRE_ASSIGN_OR_RETURN(const bool adds_eos, flag(checkpoint, "add_eos_token", false));
  if (adds_bos && spec.bos_id >= 0) spec.prefix_ids.push_back(spec.bos_id);
  if (adds_eos && eos >= 0) spec.suffix_ids.push_back(eos);

  for (const std::string_view key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    QUIRE_ASSIGN_OR_RETURN(const int32_t id, id_key(checkpoint, key, key == "eos_token_id" ? eos : -1));
    if (id >= 0) spec.end_of_generation_ids.push_back(id);
  }
  add_end_texts(&spec);
  return spec;
}

Result<std::optional<std::string>> gguf_chat_template(const Checkpoint& checkpoint) {
  const MetaValue* value = checkpoint.meta("tokenizer.chat_template");
  if (value == nullptr) return std::optional<std::string>();
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) return corrupt("tokenizer.chat_template is not a string");
  return std::optional<std::string>(*text);
}

Result<std::vector<std::pair<std::string, std::string>>> gguf_named_chat_templates(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, std::string>> templates;
  const MetaValue* value = checkpoint.meta("tokenizer.chat_templates");
  if (value == nullptr) return templates;
  const auto* names = std::get_if<std::vector<std::string>>(value);
  if (names == nullptr) return corrupt("tokenizer.chat_templates is not an array of strings");
  for (const std::string& name : *names) {
    const MetaValue* source = checkpoint.meta("tokenizer.chat_template." + name);
    const auto* text = source != nullptr ? std::get_if<std::string>(source) : nullptr;
    if (text == nullptr) return corrupt("tokenizer.chat_template." + name + " is missing or not a string");
    templates.emplace_back(name, *text);
  }
  return templates;
}

std::string_view gguf_special_key(std::string_view name) {
  for (const auto& [key, special] : kSpecialKeys) {
    if (special == name) return key;
  }
  return {};
}

bool gguf_ends_generation(std::string_view text) {
  return std::find(kEndTexts.begin(), kEndTexts.end(), text) != kEndTexts.end();
}

Result<std::vector<std::pair<std::string, int32_t>>> gguf_special_token_ids(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, int32_t>> ids;
  QUIRE_ASSIGN_OR_RETURN(const auto tokens, tokens_of(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(const auto* model, optional_key<std::string>(checkpoint, "model", "a string"));
  const bool sentencepiece = model != nullptr && *model == "llama";
  for (const auto& [key, name] : kSpecialKeys) {
    const int32_t otherwise = !sentencepiece              ? -1
                              : key == "bos_token_id"     ? 1
                              : key == "eos_token_id"     ? 2
                              : key == "unknown_token_id" ? 0
                                                          : -1;
    QUIRE_ASSIGN_OR_RETURN(const int32_t id, id_key(checkpoint, key, otherwise));
    if (id < 0) continue;
    if (static_cast<size_t>(id) >= tokens.size()) return corrupt(key_of(key) + " is outside the vocabulary");
    ids.emplace_back(name, id);
  }
  return ids;
}

Result<std::vector<std::pair<std::string, std::string>>> gguf_special_token_texts(const Checkpoint& checkpoint) {
  std::vector<std::pair<std::string, std::string>> texts;
  QUIRE_ASSIGN_OR_RETURN(const auto tokens, tokens_of(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(const auto ids, gguf_special_token_ids(checkpoint));
  for (const auto& [name, id] : ids) texts.emplace_back(name, tokens[static_cast<size_t>(id)]);
  return texts;
}

}  // namespace quire
