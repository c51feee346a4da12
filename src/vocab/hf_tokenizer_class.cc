#include "vocab/hf_tokenizer_class.h"

#include <algorithm>
#include <utility>

#include "text/splitter.h"

namespace quire {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

struct ClassName {
  HfTokenizerClass tokenizer_class;
  std::string_view name;
};
constexpr ClassName kNames[] = {{HfTokenizerClass::kBackend, "TokenizersBackend"},
                                {HfTokenizerClass::kLlama, "LlamaTokenizer"},
                                {HfTokenizerClass::kGemma, "GemmaTokenizer"},
                                {HfTokenizerClass::kQwen2, "Qwen2Tokenizer"},
                                {HfTokenizerClass::kGpt2, "GPT2Tokenizer"}};
constexpr std::string_view kGenericNames[] = {"TokenizersBackend", "PythonBackend", "PreTrainedTokenizer",
                                              "PreTrainedTokenizerFast"};

// The class that transformers registers for a model type, and whether it goes before what the files name.
struct Registered {
  std::string_view model_type;
  HfTokenizerClass tokenizer_class;
  bool overrides;
};
constexpr Registered kRegistered[] = {{"gemma3", HfTokenizerClass::kGemma, false},
                                      {"gemma3_text", HfTokenizerClass::kGemma, false},
                                      {"qwen2", HfTokenizerClass::kQwen2, true}};
// Registered with a generic class, which a class that the files name does not replace.
constexpr std::string_view kGenericTypes[] = {"mistral"};

bool is_generic(std::string_view name) {
  return name.empty() || std::ranges::find(kGenericNames, name) != std::end(kGenericNames);
}

HfTokenizerClass class_by_name(std::string_view name, std::vector<std::string>* remarks) {
  if (is_generic(name)) return HfTokenizerClass::kBackend;
  const auto* found = std::ranges::find(kNames, name, &ClassName::name);
  if (found != std::end(kNames)) return found->tokenizer_class;
  remarks->push_back("tokenizer_config.json: the tokenizer_class '" + std::string(name.substr(0, 60)) +
                     "' may have rules of its own, which quire does not know; text is split as tokenizer.json says");
  return HfTokenizerClass::kBackend;
}

PreTokenizerStep step_of(PreTokenizerStep::Kind kind, std::string_view pattern) {
  PreTokenizerStep step;
  step.kind = kind;
  step.pattern = pattern;
  return step;
}

void set_byte_level(std::string_view pattern, bool prefix_space, TokenizerSpec* spec) {
  spec->pre_tokenizer.clear();
  // Qwen 2 splits first; GPT-2's own splitter works behind the space.
  const PreTokenizerStep splits = step_of(PreTokenizerStep::Kind::kRegex, pattern);
  const PreTokenizerStep prefixes = step_of(PreTokenizerStep::Kind::kPrefixSpace, "");
  const bool split_first = pattern == kQwen2Pattern;
  if (split_first) spec->pre_tokenizer.push_back(splits);
  if (prefix_space) spec->pre_tokenizer.push_back(prefixes);
  if (!split_first) spec->pre_tokenizer.push_back(splits);
  spec->byte_level = true;
  spec->byte_fallback = spec->fuse_unknown = false;
  spec->unknown_id = -1;
  spec->decoder = DecoderKind::kByteLevel;
  spec->strips_leading_space = false;
}

void set_llama(const HfTokenizerSettings& settings, TokenizerSpec* spec) {
  const bool prefix = settings.add_prefix_space.value_or(true);
  PreTokenizerStep step = step_of(PreTokenizerStep::Kind::kMetaspace, kSpaceMark);
  step.split = false;
  step.prepend = !prefix                           ? PrependScheme::kNone
                 : settings.legacy.value_or(false) ? PrependScheme::kAlways
                                                   : PrependScheme::kFirst;
  spec->normalizer.clear();
  spec->pre_tokenizer = {step};
  spec->unknown_id = -1;
  spec->strips_leading_space = prefix;
}

void set_gemma(TokenizerSpec* spec) {
  spec->normalizer = {{NormalizerStep::Kind::kReplace, " ", std::string(kSpaceMark)}};
  PreTokenizerStep step = step_of(PreTokenizerStep::Kind::kLiteral, " ");
  step.behavior = SplitBehavior::kMergedWithPrevious;
  spec->pre_tokenizer = {step};
  spec->strips_leading_space = false;
}

// The special tokens that a class has where no file names others.
std::vector<HfNamedToken> class_tokens(HfTokenizerClass tokenizer_class) {
  const auto tokens = [](std::initializer_list<std::pair<const char*, const char*>> list) {
    std::vector<HfNamedToken> named;
    for (const auto& [name, text] : list) {
      HfNamedToken token{name, {}, /*plain=*/true};
      token.token.text = text;
      token.token.special = true;
      named.push_back(std::move(token));
    }
    return named;
  };
  switch (tokenizer_class) {
    case HfTokenizerClass::kBackend:
      break;
    case HfTokenizerClass::kLlama:
      return tokens({{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}});
    case HfTokenizerClass::kGemma:
      return tokens({{"bos_token", "<bos>"},
                     {"eos_token", "<eos>"},
                     {"unk_token", "<unk>"},
                     {"pad_token", "<pad>"},
                     {"mask_token", "<mask>"}});
    case HfTokenizerClass::kQwen2:
      return tokens({{"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}, {"pad_token", "<|endoftext|>"}});
    case HfTokenizerClass::kGpt2:
      return tokens({{"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}, {"unk_token", "<|endoftext|>"}});
  }
  return {};
}

auto form_of(const TokenizerSpec& spec) {
  return std::make_tuple(spec.normalizer, spec.pre_tokenizer, spec.byte_level, spec.byte_fallback, spec.ignore_merges,
                         spec.unknown_id, spec.decoder, spec.strips_leading_space);
}

}  // namespace

std::string_view hf_class_name(HfTokenizerClass tokenizer_class) {
  return std::ranges::find(kNames, tokenizer_class, &ClassName::tokenizer_class)->name;
}

HfTokenizerClass resolve_hf_tokenizer_class(const HfTokenizerSettings& settings, bool byte_level,
                                            std::vector<std::string>* remarks) {
  std::string_view stated = settings.tokenizer_class;
  if (stated.ends_with("Fast") && stated != "PreTrainedTokenizerFast") stated.remove_suffix(4);
  const auto* registered = std::ranges::find(kRegistered, settings.model_type, &Registered::model_type);
  if (registered != std::end(kRegistered)) {
    if (registered->overrides || stated.empty()) return registered->tokenizer_class;
    return class_by_name(stated, remarks);
  }
  if (std::ranges::find(kGenericTypes, settings.model_type) != std::end(kGenericTypes)) {
    return HfTokenizerClass::kBackend;
  }
  // Llama 3 and others say LlamaTokenizer of a tokenizer that it cannot be.
  if (stated == "LlamaTokenizer" && byte_level) return HfTokenizerClass::kBackend;
  return class_by_name(stated, remarks);
}

std::vector<HfNamedToken> hf_named_tokens(HfTokenizerClass tokenizer_class, const HfTokenizerSettings& settings) {
  std::vector<HfNamedToken> named = settings.named;
  for (HfNamedToken& each : class_tokens(tokenizer_class)) {
    if (!settings.states(each.name)) named.push_back(std::move(each));
  }
  const auto rank = [](const HfNamedToken& each) { return std::ranges::find(hf_usual_token_names(), each.name); };
  std::ranges::stable_sort(named, {}, rank);
  for (HfNamedToken& each : named) each.token.id = -1;
  return named;
}

bool apply_hf_class(HfTokenizerClass tokenizer_class, const HfTokenizerSettings& settings, TokenizerSpec* spec) {
  const auto before = form_of(*spec);
  spec->ignore_merges = false;
  switch (tokenizer_class) {
    case HfTokenizerClass::kBackend:
      return false;
    case HfTokenizerClass::kQwen2:
      spec->normalizer = {{NormalizerStep::Kind::kNfc, "", ""}};
      set_byte_level(kQwen2Pattern, settings.add_prefix_space.value_or(false), spec);
      return form_of(*spec) != before;
    case HfTokenizerClass::kGpt2:
      spec->normalizer.clear();
      set_byte_level(kGpt2Pattern, settings.add_prefix_space.value_or(false), spec);
      return form_of(*spec) != before;
    case HfTokenizerClass::kLlama:
      set_llama(settings, spec);
      break;
    case HfTokenizerClass::kGemma:
      set_gemma(spec);
      break;
  }
  spec->byte_level = false;
  spec->byte_fallback = spec->fuse_unknown = true;
  spec->decoder = DecoderKind::kPieces;
  return form_of(*spec) != before;
}

}  // namespace quire
