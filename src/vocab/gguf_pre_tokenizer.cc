#include <array>

#include "text/splitter.h"
#include "vocab/gguf_tokenizer.h"

namespace quire {
namespace {

constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kFalconPunctuation = R"([\p{P}\$\+<=>\^~\|`]+)";

// GPT-2's pattern without its last alternative: what of white space it leaves over stays one piece.
constexpr std::string_view kDefaultWords = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

constexpr std::string_view kDeepseekV3Cjk = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kDeepseekV3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kDeepseekNewline = R"([\r\n])";
constexpr std::string_view kDeepseekCjk = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr std::string_view kDeepseekLlmPunctuation =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";
// Cased letters of an older Unicode, as DeepSeek's tokenizer.json lists them.
constexpr std::string_view kDeepseekLlmLetters =
    R"(\s?[)"
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1})"
    R"(\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5})"
    R"(\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a})"
    R"(\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b})"
    R"(\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc})"
    R"(\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107})"
    R"(\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134})"
    R"(\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4})"
    R"(\x{2ceb}-\x{2cee}\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787})"
    R"(\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a})"
    R"(\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2})"
    R"(\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    R"(]+)";

PreTokenizerStep pattern_step(std::string_view pattern) {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kRegex;
  step.pattern = pattern;
  return step;
}

PreTokenizerStep each_digit() {
  PreTokenizerStep step;
  step.kind = PreTokenizerStep::Kind::kDigits;
  return step;
}

GgufPreTokenizer patterns(std::initializer_list<std::string_view> list) {
  GgufPreTokenizer result;
  for (const std::string_view pattern : list) result.steps.push_back(pattern_step(pattern));
  return result;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view n : names) {
    if (n == name) return true;
  }
  return false;
}

}  // namespace

Result<GgufPreTokenizer> gguf_pre_tokenizer(std::string_view name) {
  if (is_one_of(name, {"gpt-2", "mpt", "olmo"})) return patterns({kGpt2Pattern});
  if (is_one_of(name, {"smollm", "starcoder", "refact", "command-r"})) {
    GgufPreTokenizer result;
    result.steps = {each_digit(), pattern_step(kGpt2Pattern)};
    return result;
  }
  if (is_one_of(name, {"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"})) {
    GgufPreTokenizer result = patterns({kLlama3Pattern});
    result.ignore_merges = result.adds_bos = true;
    return result;
  }
  if (name == "qwen2") {
    GgufPreTokenizer result = patterns({kQwen2Pattern});
    result.normalizer.push_back({NormalizerStep::Kind::kNfc, "", ""});
    return result;
  }
  if (name == "tekken") {
    GgufPreTokenizer result = patterns({kTekkenPattern});
    result.ignore_merges = result.adds_bos = true;
    return result;
  }
  if (name == "default") {
    return patterns({kFalconPunctuation, kDefaultWords, R"(\p{N}+)", "[0-9][0-9][0-9]"});
  }
  if (name == "falcon") return patterns({kFalconPunctuation, kGpt2Pattern, "[0-9][0-9][0-9]"});
  if (name == "deepseek-v3") return patterns({R"(\p{N}{1,3})", kDeepseekV3Cjk, kDeepseekV3Words});
  if (name == "deepseek-coder") {
    return patterns({kDeepseekNewline, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, R"(\p{N})"});
  }
  if (name == "deepseek-llm") {
    return patterns({kDeepseekNewline, kDeepseekLlmLetters, kDeepseekLlmPunctuation, kTrailingSpacePattern,
                     kDeepseekCjk, R"(\p{N}+)"});
  }
  return unsupported("the pre-tokenizer '" + std::string(name) + "' (tokenizer.ggml.pre) is not one that quire knows");
}

}  // namespace quire
