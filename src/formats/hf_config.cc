#include "formats/hf_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/messages.h"
#include "formats/hf_generation_config.h"
#include "formats/hf_json.h"
#include "formats/hf_known_keys.h"
#include "formats/hf_rope.h"
#include "formats/hparams_check.h"

namespace quire {
namespace {

// Defaults of a configuration class of transformers; 0 where quire insists on the key, because no published
// checkpoint relies on the default and a wrong one would only show as nonsense.
struct ConfigClass {
  std::string_view model_type;
  std::string_view model_class;  // architectures, for files without a model_type
  int64_t vocab_size, hidden, ffn_hidden, layers, heads, kv_heads, head_dim, context_length;
  HfRopeDefaults rope;
  int64_t sliding_window;  // 0: none
};

// kv_heads -1: as many as heads. head_dim -1: hidden / heads.
constexpr ConfigClass kConfigClasses[] = {
    {"llama", "LlamaForCausalLM", 0, 0, 0, 0, 0, -1, -1, 2048, {}, 0},
    {"mistral", "MistralForCausalLM", 0, 0, 0, 0, 0, 8, -1, 131072, {}, 4096},
    {"qwen2", "Qwen2ForCausalLM", 0, 0, 0, 0, 0, 32, -1, 32768, {}, 4096},
    {"qwen3", "Qwen3ForCausalLM", 0, 0, 0, 0, 0, 32, 128, 32768, {}, 4096},
    {"gemma3_text", "Gemma3ForCausalLM", 262208, 2304, 9216, 26, 8, 4, 256, 131072, {1e6, true, 1e4}, 4096},
};
constexpr double kDefaultEps = 1e-6;
constexpr int64_t kQwenFirstSlidingLayer = 28;
constexpr int64_t kGemma3WindowPeriod = 6;
constexpr double kGemma3QueryScale = 256.0;

std::string config_path(const HfConfigTexts& texts) { return texts.directory + "/config.json"; }

const ConfigClass* class_of(std::string_view model_type, const std::vector<std::string>& architectures) {
  for (const ConfigClass& known : kConfigClasses) {
    if (known.model_type == model_type) return &known;
    if (model_type.empty() && !architectures.empty() && architectures.front() == known.model_class) return &known;
  }
  return nullptr;
}

class Reader {
 public:
  // `outer` is the whole of config.json, `text` the part that describes the language model; they may be the same.
  Reader(const HfJson& outer, const HfJson& text, const ConfigClass& defaults, const Family& family)
      : outer_(outer), text_(text), defaults_(defaults) {
    model_.family = &family;
    model_.hparams.architecture = family.name;
    model_.hparams.activation = family.activation;
  }

  Result<HfModelConfig> read() {
    note_unknown_keys(outer_, text_, defaults_.model_type, &model_.remarks);
    QUIRE_RETURN_IF_ERROR(refuse_unsupported());
    QUIRE_RETURN_IF_ERROR(read_sizes());
    QUIRE_RETURN_IF_ERROR(read_activation());
    QUIRE_RETURN_IF_ERROR(read_hf_rope(text_, defaults_.rope, &model_.hparams, &model_.remarks));
    QUIRE_RETURN_IF_ERROR(read_window());
    QUIRE_RETURN_IF_ERROR(read_attention());
    QUIRE_RETURN_IF_ERROR(read_biases());
    QUIRE_RETURN_IF_ERROR(add_end_tokens(outer_, &model_.hparams.eos_token_ids));
    if (&outer_ != &text_ && model_.hparams.eos_token_ids.empty()) {
      QUIRE_RETURN_IF_ERROR(add_end_tokens(text_, &model_.hparams.eos_token_ids));
    }
    return std::move(model_);
  }

 private:
  Status refuse_unsupported() const {
    QUIRE_ASSIGN_OR_RETURN(const auto architectures, outer_.find_strings("architectures"));
    for (const std::string& name : architectures) {
      if (!name.ends_with("ForCausalLM") && !name.ends_with("ForConditionalGeneration")) {
        return unsupported(outer_.where() + ": " + quote(name) + " (architectures) does not generate text");
      }
    }
    QUIRE_ASSIGN_OR_RETURN(const auto bidirectional, text_.find_bool("use_bidirectional_attention"));
    if (bidirectional.value_or(false)) {
      return unsupported(text_.where() + ": use_bidirectional_attention is set, so this is an encoder");
    }
    return {};
  }

  // `fallback` 0: the key must be there.
  Status read_count(const std::string& key, int64_t fallback, int64_t max, int64_t* value) const {
    QUIRE_ASSIGN_OR_RETURN(const auto given, text_.find_int(key));
    if (!given && fallback == 0) return text_.error(key, "is missing");
    *value = given.value_or(fallback);
    if (*value >= 1 && *value <= max) return {};
    return text_.error(key, "is " + std::to_string(*value) + ", not within 1.." + std::to_string(max));
  }

  Status read_sizes() {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    Hparams& h = model_.hparams;
    QUIRE_ASSIGN_OR_RETURN(const auto name, outer_.find_string("_name_or_path"));
    h.name = name.value_or("");
    QUIRE_RETURN_IF_ERROR(read_count("vocab_size", defaults_.vocab_size, kMax, &h.vocab_size));
    QUIRE_RETURN_IF_ERROR(read_count("hidden_size", defaults_.hidden, kMax, &h.hidden));
    QUIRE_RETURN_IF_ERROR(read_count("intermediate_size", defaults_.ffn_hidden, kMax, &h.ffn_hidden));
    QUIRE_RETURN_IF_ERROR(read_count("num_hidden_layers", defaults_.layers, kMaxLayers, &h.layers));
    QUIRE_RETURN_IF_ERROR(read_count("num_attention_heads", defaults_.heads, kMax, &h.heads));
    // null is "as many as heads", which is not the same as an absent key.
    const bool as_heads = defaults_.kv_heads == -1 || text_.names("num_key_value_heads");
    const int64_t kv_heads = as_heads ? h.heads : defaults_.kv_heads;
    QUIRE_RETURN_IF_ERROR(read_count("num_key_value_heads", kv_heads, kMax, &h.kv_heads));
    if (defaults_.head_dim == -1 && !text_.has("head_dim") && h.hidden % h.heads != 0) {
      return text_.error("num_attention_heads", "does not divide hidden_size, and there is no head_dim");
    }
    const int64_t head_dim = defaults_.head_dim == -1 ? std::max<int64_t>(h.hidden / h.heads, 1) : defaults_.head_dim;
    QUIRE_RETURN_IF_ERROR(read_count("head_dim", head_dim, kMax, &h.head_dim));
    QUIRE_RETURN_IF_ERROR(read_count("max_position_embeddings", defaults_.context_length, kMax, &h.context_length));
    QUIRE_ASSIGN_OR_RETURN(const auto eps, text_.find_float("rms_norm_eps"));
    h.rms_norm_eps = static_cast<float>(eps.value_or(kDefaultEps));
    QUIRE_ASSIGN_OR_RETURN(auto tied, outer_.find_bool("tie_word_embeddings"));
    if (!tied) {
      QUIRE_ASSIGN_OR_RETURN(tied, text_.find_bool("tie_word_embeddings"));
    }
    h.tied_embeddings = tied.value_or(model_.family->hf_tied_by_default);
    return {};
  }

  Status read_activation() {
    const std::string& wanted = model_.hparams.activation;
    const std::string key = model_.family->name == "gemma3" ? "hidden_activation" : "hidden_act";
    QUIRE_ASSIGN_OR_RETURN(const auto given, text_.find_string(key));
    const std::string_view spelled = wanted == "gelu_tanh" ? "gelu_pytorch_tanh" : "silu";
    if (!given || *given == spelled) return {};
    return unsupported(text_.where() + ": " + key + " is " + quote(*given) + ", but quire runs " +
                       model_.hparams.architecture + " with \"" + std::string(spelled) + "\" only");
  }

  bool is_qwen() const { return defaults_.model_type == "qwen2" || defaults_.model_type == "qwen3"; }

  Status read_window() {
    Hparams& h = model_.hparams;
    h.layer_slides.assign(static_cast<size_t>(h.layers), false);
    QUIRE_ASSIGN_OR_RETURN(const int64_t window, read_window_size());
    // Llama has no window, whatever the list says.
    QUIRE_ASSIGN_OR_RETURN(const auto types, text_.find_strings("layer_types"));
    if (defaults_.model_type != "llama" && !types.empty()) {
      QUIRE_RETURN_IF_ERROR(slide_as_listed(types));
    } else if (window > 0 || defaults_.model_type == "gemma3_text") {
      QUIRE_RETURN_IF_ERROR(slide_by_rule());
    }
    if (std::ranges::find(h.layer_slides, true) == h.layer_slides.end()) return {};
    if (window == 0) return text_.error("sliding_window", "is not set, but layers have a window");
    h.sliding_window = window;
    return {};
  }

  Status slide_as_listed(const std::vector<std::string>& types) {
    Hparams& h = model_.hparams;
    if (types.size() != h.layer_slides.size()) {
      return text_.error("layer_types", "has " + std::to_string(types.size()) + " entries for " +
                                            std::to_string(h.layers) + " layers");
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] != "sliding_attention" && types[i] != "full_attention") {
        return unsupported(text_.where() + ": layer_types holds " + quote(types[i]) +
                           ", which is neither full_attention nor sliding_attention");
      }
      h.layer_slides[i] = types[i] == "sliding_attention";
    }
    return {};
  }

  // 0: there is none.
  Result<int64_t> read_window_size() const {
    if (defaults_.sliding_window == 0) return 0;
    if (is_qwen()) {
      QUIRE_ASSIGN_OR_RETURN(const auto used, text_.find_bool("use_sliding_window"));
      if (!used.value_or(false)) return 0;
    }
    // null is "none", which for mistral is not the same as an absent key.
    QUIRE_ASSIGN_OR_RETURN(const auto window, text_.find_int("sliding_window"));
    if (!window) return text_.names("sliding_window") ? 0 : defaults_.sliding_window;
    if (*window < 1) return text_.error("sliding_window", "is " + std::to_string(*window));
    return *window;
  }

  Status slide_by_rule() {
    Hparams& h = model_.hparams;
    int64_t first = 0, period = 0;
    if (is_qwen()) {
      QUIRE_ASSIGN_OR_RETURN(const auto given, text_.find_int("max_window_layers"));
      first = given.value_or(kQwenFirstSlidingLayer);
    } else if (model_.family->name == "gemma3") {
      QUIRE_ASSIGN_OR_RETURN(const auto given, text_.find_int("sliding_window_pattern"));
      period = given.value_or(kGemma3WindowPeriod);
      if (period < 1) return text_.error("sliding_window_pattern", "is " + std::to_string(period));
      // How transformers 5 saves it, for its own information: it reads layer_types back.
      QUIRE_ASSIGN_OR_RETURN(const auto saved, text_.find_int("_sliding_window_pattern"));
      if (saved && *saved != period) {
        model_.remarks.push_back(text_.where() + ": \"_sliding_window_pattern\" is " + std::to_string(*saved) +
                                 ", but without layer_types each layer number " + std::to_string(period) +
                                 " attends to everything, as in transformers");
      }
    }
    for (int64_t i = 0; i < h.layers; ++i) {
      h.layer_slides[static_cast<size_t>(i)] = i >= first && (period == 0 || (i + 1) % period != 0);
    }
    return {};
  }

  Status read_attention() {
    Hparams& h = model_.hparams;
    if (h.architecture != "gemma3") return {};
    QUIRE_ASSIGN_OR_RETURN(const auto query_scale, text_.find_float("query_pre_attn_scalar"));
    const double scalar = query_scale.value_or(kGemma3QueryScale);
    if (!(scalar > 0.0)) return text_.error("query_pre_attn_scalar", "is not positive");
    if (scalar != static_cast<double>(h.head_dim)) h.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
    QUIRE_ASSIGN_OR_RETURN(const auto attention_cap, text_.find_float("attn_logit_softcapping"));
    QUIRE_ASSIGN_OR_RETURN(const auto final_cap, text_.find_float("final_logit_softcapping"));
    h.attention_softcap = static_cast<float>(attention_cap.value_or(0.0));
    h.final_softcap = static_cast<float>(final_cap.value_or(0.0));
    return {};
  }

  // Qwen2's and Mistral's are fixed by the class; the others have keys for them.
  Status read_biases() {
    if (defaults_.model_type == "qwen2") {
      model_.biases.qkv = Presence::kAlways;
    } else if (defaults_.model_type != "mistral") {
      QUIRE_ASSIGN_OR_RETURN(const auto attention, text_.find_bool("attention_bias"));
      if (attention.value_or(false)) model_.biases.qkv = model_.biases.output = Presence::kAlways;
      if (defaults_.model_type != "llama") return {};
      QUIRE_ASSIGN_OR_RETURN(const auto mlp, text_.find_bool("mlp_bias"));
      if (mlp.value_or(false)) model_.biases.mlp = Presence::kAlways;
    }
    return {};
  }

  const HfJson& outer_;
  const HfJson& text_;
  const ConfigClass& defaults_;
  HfModelConfig model_;
};

Status read_generation_text(const HfConfigTexts& texts, Hparams* h, std::vector<std::string>* remarks) {
  if (texts.generation_config == nullptr) return {};
  QUIRE_ASSIGN_OR_RETURN(const HfJson generation,
                         HfJson::parse(*texts.generation_config, texts.directory + "/generation_config.json"));
  return read_hf_generation_config(generation, h, remarks);
}

}  // namespace

Result<HfModelConfig> read_hf_config(const HfConfigTexts& texts) {
  if (texts.config == nullptr) {
    return not_found(config_path(texts) + ": no such file, so this is not a Hugging Face checkpoint");
  }
  QUIRE_ASSIGN_OR_RETURN(const HfJson outer, HfJson::parse(*texts.config, config_path(texts)));
  QUIRE_ASSIGN_OR_RETURN(const auto nested, outer.find_object("text_config"));
  const HfJson& text = nested ? *nested : outer;
  QUIRE_ASSIGN_OR_RETURN(const auto model_type, text.find_string("model_type"));
  QUIRE_ASSIGN_OR_RETURN(const auto architectures, text.find_strings("architectures"));
  const ConfigClass* known = class_of(model_type.value_or(""), architectures);
  const Family* family = known != nullptr ? family_by_model_type(known->model_type) : nullptr;
  if (family == nullptr) {
    const std::string unknown = model_type ? *model_type : architectures.empty() ? "" : architectures.front();
    return unsupported(text.where() + ": has the unknown model_type " + quote(unknown) + "; supported are " +
                       supported_model_types());
  }
  QUIRE_ASSIGN_OR_RETURN(HfModelConfig model, Reader(outer, text, *known, *family).read());
  if (!nested && !architectures.empty() && architectures.front() != known->model_class) {
    model.remarks.push_back(outer.where() + ": \"architectures\" names " + quote(architectures.front()) +
                            ", but the model is run as its model_type says, " + quote(known->model_type));
  }
  QUIRE_RETURN_IF_ERROR(read_generation_text(texts, &model.hparams, &model.remarks));
  QUIRE_RETURN_IF_ERROR(check_hparams(model.hparams, config_path(texts)));
  return model;
}

Result<Hparams> read_hf_vocabulary_hparams(const HfConfigTexts& texts) {
  Hparams h;
  if (texts.config != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const HfJson config, HfJson::parse(*texts.config, config_path(texts)));
    QUIRE_ASSIGN_OR_RETURN(const auto model_type, config.find_string("model_type"));
    h.architecture = model_type.value_or("");
    QUIRE_ASSIGN_OR_RETURN(const auto nested, config.find_object("text_config"));
    QUIRE_ASSIGN_OR_RETURN(const auto vocab_size, (nested ? *nested : config).find_int("vocab_size"));
    h.vocab_size = std::max<int64_t>(vocab_size.value_or(0), 0);
    QUIRE_RETURN_IF_ERROR(add_end_tokens(config, &h.eos_token_ids));
  }
  std::vector<std::string> remarks;  // of a model that is not run
  QUIRE_RETURN_IF_ERROR(read_generation_text(texts, &h, &remarks));
  return h;
}

}  // namespace quire
