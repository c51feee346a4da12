#include "formats/gguf_hparams.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/messages.h"
#include "formats/hparams_check.h"

namespace quire {
namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
// Gemma 3 defaults that the converter leaves out of the file.
constexpr int64_t kGemma3WindowPeriod = 6;
constexpr double kGemma3LocalRopeBase = 10000.0;
constexpr int64_t kGemma3LayersOf27B = 62;

// Token types of tokenizer.ggml.token_type.
constexpr int64_t kControlToken = 3;
constexpr int64_t kUserDefinedToken = 4;

// Texts that end a generation although no key of the file says so.
constexpr std::array<std::string_view, 9> kEndTexts = {
    "<|eot_id|>",    "<|im_end|>",      "<|end|>",
    "<end_of_turn>", "<|endoftext|>",   "<|eom_id|>",
    "</s>",          "<|end_of_text|>", "<\uff5cend\u2581of\u2581sentence\uff5c>"};

class Reader {
 public:
  Reader(const GgufMetadataView& metadata, const Family& family) : meta_(metadata), family_(family) {}

  Result<Hparams> read() {
    QUIRE_ASSIGN_OR_RETURN(h_, read_gguf_vocabulary_hparams(meta_));
    h_.activation = family_.activation;
    QUIRE_RETURN_IF_ERROR(read_sizes());
    QUIRE_RETURN_IF_ERROR(read_heads());
    QUIRE_RETURN_IF_ERROR(read_rope());
    QUIRE_RETURN_IF_ERROR(read_window());
    QUIRE_RETURN_IF_ERROR(read_attention());
    QUIRE_RETURN_IF_ERROR(read_sampling());
    return std::move(h_);
  }

 private:
  std::string key(std::string_view suffix) const { return std::string(family_.name) + "." + std::string(suffix); }

  Status read_sizes() {
    QUIRE_ASSIGN_OR_RETURN(h_.layers, meta_.require_int(key("block_count"), 1, kMaxLayers));
    QUIRE_ASSIGN_OR_RETURN(h_.hidden, meta_.require_int(key("embedding_length"), 1, kMaxCount));
    QUIRE_ASSIGN_OR_RETURN(h_.context_length, meta_.require_int(key("context_length"), 1, kMaxCount));
    const std::string ffn = key("feed_forward_length");
    QUIRE_ASSIGN_OR_RETURN(const auto ffn_hidden, meta_.find_uniform_int(ffn, h_.layers, 1, kMaxCount));
    if (!ffn_hidden) return meta_.error(ffn, "is missing");
    h_.ffn_hidden = *ffn_hidden;
    QUIRE_ASSIGN_OR_RETURN(const double eps, meta_.require_float(key("attention.layer_norm_rms_epsilon")));
    h_.rms_norm_eps = static_cast<float>(eps);
    QUIRE_ASSIGN_OR_RETURN(const auto experts, meta_.find_int(key("expert_count"), 0, kMaxCount));
    if (experts.value_or(0) > 0) {
      return unsupported(meta_.path() + ": is a mixture of " + std::to_string(*experts) +
                         " experts, which quire cannot run yet");
    }
    return {};
  }

  Status read_heads() {
    const std::string heads_key = key("attention.head_count");
    QUIRE_ASSIGN_OR_RETURN(const auto heads, meta_.find_uniform_int(heads_key, h_.layers, 1, kMaxCount));
    if (!heads) return meta_.error(heads_key, "is missing");
    h_.heads = *heads;
    QUIRE_ASSIGN_OR_RETURN(const auto kv_heads,
                           meta_.find_uniform_int(key("attention.head_count_kv"), h_.layers, 1, kMaxCount));
    h_.kv_heads = kv_heads.value_or(h_.heads);
    QUIRE_ASSIGN_OR_RETURN(const auto key_length, meta_.find_int(key("attention.key_length"), 1, kMaxCount));
    if (!key_length && h_.hidden % h_.heads != 0) {
      return meta_.error(heads_key, "is " + std::to_string(h_.heads) + ", which does not divide the hidden size " +
                                        std::to_string(h_.hidden));
    }
    h_.head_dim = key_length.value_or(h_.hidden / h_.heads);
    QUIRE_ASSIGN_OR_RETURN(const auto value_length, meta_.find_int(key("attention.value_length"), 1, kMaxCount));
    if (value_length.value_or(h_.head_dim) != h_.head_dim) {
      return unsupported(meta_.path() + ": keys of " + std::to_string(h_.head_dim) + " and values of " +
                         std::to_string(*value_length) + " elements a head differ, which quire cannot run");
    }
    return {};
  }

  Status read_rope() {
    QUIRE_ASSIGN_OR_RETURN(const auto rope_dim, meta_.find_int(key("rope.dimension_count"), 1, kMaxCount));
    h_.rope_dim = rope_dim.value_or(h_.head_dim);
    if (family_.gguf_interleaved_qk && h_.rope_dim != h_.head_dim) {
      return unsupported(meta_.path() + ": rotates " + std::to_string(h_.rope_dim) + " of the " +
                         std::to_string(h_.head_dim) + " dimensions of a head, which quire cannot do for " +
                         h_.architecture);
    }
    QUIRE_ASSIGN_OR_RETURN(const auto base, meta_.find_float(key("rope.freq_base")));
    h_.rope.theta = base.value_or(10000.0);
    return read_rope_scaling();
  }

  Status read_rope_scaling() {
    QUIRE_ASSIGN_OR_RETURN(const auto type, meta_.find_string(key("rope.scaling.type")));
    QUIRE_ASSIGN_OR_RETURN(const double factor, read_rope_factor());
    QUIRE_ASSIGN_OR_RETURN(const auto original,
                           meta_.find_int(key("rope.scaling.original_context_length"), 0, kMaxCount));
    h_.rope.original_context = original.value_or(0);
    QUIRE_ASSIGN_OR_RETURN(const auto magnitude, meta_.find_float(key("rope.scaling.attn_factor")));
    if (type == "yarn") {
      h_.rope.scaling = RopeScaling::kYarn;
      h_.rope.factor = factor;
      return read_yarn(magnitude.value_or(1.0));
    }
    if (type && *type != "none" && *type != "linear") {
      return unsupported(meta_.path() + ": metadata key " + quote(key("rope.scaling.type")) + " is " + quote(*type) +
                         ", which quire cannot run for " + h_.architecture + " (none, linear, yarn)");
    }
    if (magnitude.value_or(1.0) != 1.0) return meta_.error(key("rope.scaling.attn_factor"), "goes with yarn only");
    if (type != "none" && factor != 1.0) {
      h_.rope.scaling = RopeScaling::kLinear;
      h_.rope.factor = factor;
    }
    return {};
  }

  // 1 where the file has none; 0 is how an older key says the same.
  Result<double> read_rope_factor() const {
    for (const std::string_view name : {"rope.scaling.factor", "rope.scale_linear"}) {
      QUIRE_ASSIGN_OR_RETURN(const auto factor, meta_.find_float(key(name)));
      if (factor && *factor != 0.0) return *factor;
    }
    return 1.0;
  }

  // `magnitude` multiplies what yarn derives from its factor, 0.1 ln(factor) + 1.
  Status read_yarn(double magnitude) {
    QUIRE_ASSIGN_OR_RETURN(const auto fast, meta_.find_float(key("rope.scaling.yarn_beta_fast")));
    QUIRE_ASSIGN_OR_RETURN(const auto slow, meta_.find_float(key("rope.scaling.yarn_beta_slow")));
    QUIRE_ASSIGN_OR_RETURN(const auto ext, meta_.find_float(key("rope.scaling.yarn_ext_factor")));
    QUIRE_ASSIGN_OR_RETURN(const auto attn, meta_.find_float(key("rope.scaling.yarn_attn_factor")));
    QUIRE_ASSIGN_OR_RETURN(const auto log_multiplier, meta_.find_float(key("rope.scaling.yarn_log_multiplier")));
    h_.rope.beta_fast = fast.value_or(32.0);
    h_.rope.beta_slow = slow.value_or(1.0);
    if (ext.value_or(1.0) != 1.0) {
      return unsupported(meta_.path() + ": metadata key " + quote(key("rope.scaling.yarn_ext_factor")) +
                         " is not 1, which quire cannot run");
    }
    magnitude *= attn.value_or(1.0);
    if (log_multiplier.value_or(0.0) != 0.0) {
      h_.rope.mscale = 1.0;
      h_.rope.mscale_all_dim = *log_multiplier;
      if (magnitude != 1.0) return meta_.error(key("rope.scaling.yarn_log_multiplier"), "comes with a second factor");
    } else if (magnitude != 1.0) {
      h_.rope.attention_factor = magnitude * (h_.rope.factor > 1.0 ? 0.1 * std::log(h_.rope.factor) + 1.0 : 1.0);
    }
    return {};
  }

  Status read_window() {
    const bool gemma3 = h_.architecture == "gemma3";
    h_.layer_slides.assign(static_cast<size_t>(h_.layers), false);
    QUIRE_ASSIGN_OR_RETURN(const auto window, meta_.find_int(key("attention.sliding_window"), 0, kMaxCount));
    h_.sliding_window = window.value_or(0);
    if (h_.sliding_window == 0) return {};

    const std::string pattern_key = key("attention.sliding_window_pattern");
    const MetaValue* pattern = meta_.find(pattern_key);
    if (const auto* slides = pattern != nullptr ? std::get_if<std::vector<bool>>(pattern) : nullptr) {
      if (slides->size() != h_.layer_slides.size()) {
        return meta_.error(pattern_key, "has " + std::to_string(slides->size()) + " entries for " +
                                            std::to_string(h_.layers) + " layers");
      }
      h_.layer_slides = *slides;
    } else {
      // A period p makes layer p - 1, 2p - 1, ... attend to everything; 0 makes every layer slide.
      QUIRE_ASSIGN_OR_RETURN(const auto given, meta_.find_int(pattern_key, 0, kMaxCount));
      const int64_t period = given.value_or(gemma3 ? kGemma3WindowPeriod : 0);
      for (int64_t i = 0; i < h_.layers; ++i) {
        h_.layer_slides[static_cast<size_t>(i)] = period == 0 || (i + 1) % period != 0;
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const auto local_base, meta_.find_float(key("rope.freq_base_swa")));
    if (gemma3 || local_base) {
      h_.rope_local.emplace();
      h_.rope_local->theta = local_base.value_or(kGemma3LocalRopeBase);
    }
    return {};
  }

  Status read_attention() {
    QUIRE_ASSIGN_OR_RETURN(const auto scale, meta_.find_float(key("attention.scale")));
    if (scale) {
      h_.attention_scale = static_cast<float>(*scale);
    } else if (h_.architecture == "gemma3" && h_.layers == kGemma3LayersOf27B) {
      // No key holds query_pre_attn_scalar; only the 27B model's differs from the head size.
      h_.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(h_.hidden / h_.heads)));
    }
    QUIRE_ASSIGN_OR_RETURN(const auto attention_cap, meta_.find_float(key("attn_logit_softcapping")));
    QUIRE_ASSIGN_OR_RETURN(const auto final_cap, meta_.find_float(key("final_logit_softcapping")));
    h_.attention_softcap = static_cast<float>(attention_cap.value_or(0.0));
    h_.final_softcap = static_cast<float>(final_cap.value_or(0.0));
    // Multipliers of architectures that share llama's tensors.
    for (const std::string_view factor : {"logit_scale", "embedding_scale", "residual_scale"}) {
      QUIRE_ASSIGN_OR_RETURN(const auto value, meta_.find_float(key(factor)));
      if (value.value_or(1.0) != 1.0 && *value != 0.0) {
        return unsupported(meta_.path() + ": metadata key " + quote(key(factor)) +
                           " is set, which quire cannot run for " + h_.architecture);
      }
    }
    return {};
  }

  Status read_sampling() {
    QUIRE_ASSIGN_OR_RETURN(const auto temperature, meta_.find_float("general.sampling.temp"));
    QUIRE_ASSIGN_OR_RETURN(const auto top_k, meta_.find_int("general.sampling.top_k", -1, kMaxCount));
    QUIRE_ASSIGN_OR_RETURN(const auto top_p, meta_.find_float("general.sampling.top_p"));
    QUIRE_ASSIGN_OR_RETURN(const auto min_p, meta_.find_float("general.sampling.min_p"));
    QUIRE_ASSIGN_OR_RETURN(const auto penalty, meta_.find_float("general.sampling.penalty_repeat"));
    const auto within = [&](const char* key, const std::optional<double>& value, double low, double high) -> Status {
      if (!value || (*value >= low && *value <= high)) return {};
      return meta_.error("general.sampling." + std::string(key), "is " + std::to_string(*value));
    };
    QUIRE_RETURN_IF_ERROR(within("temp", temperature, 0.0, std::numeric_limits<float>::max()));
    QUIRE_RETURN_IF_ERROR(within("top_p", top_p, 0.0, 1.0));
    QUIRE_RETURN_IF_ERROR(within("min_p", min_p, 0.0, 1.0));
    QUIRE_RETURN_IF_ERROR(
        within("penalty_repeat", penalty, std::numeric_limits<float>::min(), std::numeric_limits<float>::max()));
    if (temperature) h_.default_temperature = static_cast<float>(*temperature);
    if (top_k) h_.default_top_k = static_cast<int32_t>(std::max<int64_t>(*top_k, 0));  // -1, as 0: off
    if (top_p) h_.default_top_p = static_cast<float>(*top_p);
    if (min_p) h_.default_min_p = static_cast<float>(*min_p);
    if (penalty) h_.default_repetition_penalty = static_cast<float>(*penalty);
    return {};
  }

  const GgufMetadataView& meta_;
  const Family& family_;
  Hparams h_;
};

// One type a token, or nothing where the file has none. Text must be told from control by it.
Result<std::vector<int64_t>> read_token_types(const GgufMetadataView& metadata, size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  const MetaValue* value = metadata.find(kKey);
  if (value == nullptr) return std::vector<int64_t>();
  std::vector<int64_t> types;
  if (const auto* as_signed = std::get_if<std::vector<int64_t>>(value)) {
    types = *as_signed;
  } else if (const auto* as_unsigned = std::get_if<std::vector<uint64_t>>(value)) {
    types.assign(as_unsigned->begin(), as_unsigned->end());
  } else {
    return metadata.error(kKey, "is not an array of integers");
  }
  if (types.size() != tokens) {
    return metadata.error(kKey,
                          "has " + std::to_string(types.size()) + " entries for " + std::to_string(tokens) + " tokens");
  }
  return types;
}

Status check_scores(const GgufMetadataView& metadata, size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  const MetaValue* value = metadata.find(kKey);
  if (value == nullptr) return {};
  const auto* scores = std::get_if<std::vector<double>>(value);
  if (scores == nullptr) return metadata.error(kKey, "is not an array of floats");
  if (scores->size() != tokens) {
    return metadata.error(
        kKey, "has " + std::to_string(scores->size()) + " entries for " + std::to_string(tokens) + " tokens");
  }
  return {};
}

// "</s>" is also an HTML tag and as such an ordinary token of some vocabularies (Gemma's).
bool ends_by_text(const std::string& token, int64_t type) {
  if (std::ranges::find(kEndTexts, token) == kEndTexts.end()) return false;
  return type == kControlToken || (type == kUserDefinedToken && token != "</s>");
}

Status read_end_tokens(const GgufMetadataView& metadata, Hparams* h) {
  const MetaValue* value = metadata.find("tokenizer.ggml.tokens");
  const int64_t known = h->vocab_size > 0 ? h->vocab_size : kMaxCount;
  for (const std::string_view name : {"eos", "eot", "eom"}) {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    QUIRE_ASSIGN_OR_RETURN(const auto id, metadata.find_int(key, 0, known - 1));
    if (id) h->eos_token_ids.push_back(static_cast<int32_t>(*id));
  }
  if (value != nullptr) {
    const auto& tokens = std::get<std::vector<std::string>>(*value);
    QUIRE_RETURN_IF_ERROR(check_scores(metadata, tokens.size()));
    QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> types, read_token_types(metadata, tokens.size()));
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] != 1 && ends_by_text(tokens[i], types[i])) h->eos_token_ids.push_back(static_cast<int32_t>(i));
    }
  }
  auto& ids = h->eos_token_ids;
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return {};
}

}  // namespace

Result<Hparams> read_gguf_vocabulary_hparams(const GgufMetadataView& metadata) {
  Hparams h;
  QUIRE_ASSIGN_OR_RETURN(h.architecture, metadata.require_string("general.architecture"));
  QUIRE_ASSIGN_OR_RETURN(const auto name, metadata.find_string("general.name"));
  h.name = name.value_or("");
  if (const MetaValue* value = metadata.find("tokenizer.ggml.tokens")) {
    const auto* tokens = std::get_if<std::vector<std::string>>(value);
    if (tokens == nullptr) return metadata.error("tokenizer.ggml.tokens", "is not an array of strings");
    h.vocab_size = static_cast<int64_t>(tokens->size());
  } else {
    QUIRE_ASSIGN_OR_RETURN(const auto size, metadata.find_int(h.architecture + ".vocab_size", 1, kMaxCount));
    h.vocab_size = size.value_or(0);
  }
  QUIRE_RETURN_IF_ERROR(read_end_tokens(metadata, &h));
  return h;
}

Result<Hparams> read_gguf_hparams(const GgufMetadataView& metadata, const Family& family) {
  return Reader(metadata, family).read();
}

}  // namespace quire
