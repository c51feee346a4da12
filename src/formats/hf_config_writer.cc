#include "formats/hf_config_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/messages.h"
#include "formats/llama3_rope.h"

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// The shortest decimal number that is this float, so that 1e-5f is written as 1e-05.
double shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

// The class of transformers that runs a text model of this type; empty: unknown.
std::string_view class_of(std::string_view model_type) {
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {{"llama", "LlamaForCausalLM"},
                                                                        {"mistral", "MistralForCausalLM"},
                                                                        {"qwen2", "Qwen2ForCausalLM"},
                                                                        {"qwen3", "Qwen3ForCausalLM"},
                                                                        {"gemma3_text", "Gemma3ForCausalLM"}};
  const auto* found = std::ranges::find(kClasses, model_type, [](const auto& each) { return each.first; });
  return found != std::end(kClasses) ? found->second : std::string_view();
}

std::string dtype_name(DType dtype) {
  return dtype == DType::kBF16 ? "bfloat16" : dtype == DType::kF16 ? "float16" : "float32";
}

// Null where the file names none.
Json token_id(const Checkpoint& source, const char* name) {
  const MetaValue* value = source.meta("tokenizer.ggml." + std::string(name) + "_token_id");
  if (value == nullptr) return {};
  if (const auto* id = std::get_if<uint64_t>(value)) return *id;
  if (const auto* id = std::get_if<int64_t>(value)) return *id;
  return {};
}

void add_token_ids(const Checkpoint& source, Json& json) {
  json["bos_token_id"] = token_id(source, "bos");
  const std::vector<int32_t>& ends = source.hparams().eos_token_ids;
  json["eos_token_id"] = ends.size() == 1 ? Json(ends[0]) : Json(ends);
  if (ends.empty()) json["eos_token_id"] = nullptr;
  json["pad_token_id"] = token_id(source, "padding");
}

// Makes a configuration from what a GGUF file says.
class ConfigMaker {
 public:
  explicit ConfigMaker(const Checkpoint& source) : source_(source), h_(source.hparams()) {}

  Result<Json> make() {
    QUIRE_RETURN_IF_ERROR(add_class());
    add_sizes();
    QUIRE_RETURN_IF_ERROR(add_rope());
    QUIRE_RETURN_IF_ERROR(add_window());
    QUIRE_RETURN_IF_ERROR(add_attention());
    QUIRE_RETURN_IF_ERROR(add_biases());
    add_token_ids(source_, json_);
    return std::move(json_);
  }

 private:
  bool gemma() const { return h_.architecture == "gemma3"; }
  bool mistral() const { return h_.architecture == "llama" && h_.sliding_window > 0; }
  Status impossible(const std::string& what) const {
    return unsupported(source_.path() + ": " + what + ", which no configuration of Hugging Face's " + h_.architecture +
                       " states; write a GGUF file instead");
  }

  Status add_class() {
    const std::string model_type = mistral() ? "mistral" : gemma() ? "gemma3_text" : h_.architecture;
    const std::string_view model_class = class_of(model_type);
    if (model_class.empty()) {
      return unsupported(source_.path() + ": quire cannot write config.json for the architecture " +
                         quote(h_.architecture) + "; write a GGUF file instead");
    }
    json_["architectures"] = Json::array({model_class});
    json_["model_type"] = model_type;
    return {};
  }

  void add_sizes() {
    json_["vocab_size"] = h_.vocab_size;
    json_["hidden_size"] = h_.hidden;
    json_["intermediate_size"] = h_.ffn_hidden;
    json_["num_hidden_layers"] = h_.layers;
    json_["num_attention_heads"] = h_.heads;
    json_["num_key_value_heads"] = h_.kv_heads;
    json_["head_dim"] = h_.head_dim;
    json_["max_position_embeddings"] = h_.context_length;
    json_["rms_norm_eps"] = shortest(static_cast<double>(h_.rms_norm_eps));
    json_[gemma() ? "hidden_activation" : "hidden_act"] = h_.activation == "gelu_tanh" ? "gelu_pytorch_tanh" : "silu";
    json_["tie_word_embeddings"] = h_.tied_embeddings;
    json_["use_cache"] = true;
  }

  Status add_rope() {
    RopeParams rope = h_.rope;
    if (const TensorRef* tensor = source_.find("rope_freqs.weight")) {
      std::vector<float> factors(static_cast<size_t>(tensor->columns()));
      tensor->decode_f32(0, 1, factors.data());
      const auto scaled = rope_from_llama3_factors(rope, factors);
      if (!scaled || (rope.scaling != RopeScaling::kNone && scaled->scaling == RopeScaling::kLlama3)) {
        return impossible("tensor \"rope_freqs.weight\" holds factors that Llama 3's rope scaling does not give");
      }
      rope = *scaled;
    }
    json_["rope_theta"] = shortest(rope.theta);
    if (h_.rope_dim != h_.head_dim) {
      json_["partial_rotary_factor"] = static_cast<double>(h_.rope_dim) / static_cast<double>(h_.head_dim);
    }
    QUIRE_ASSIGN_OR_RETURN(json_["rope_scaling"], scaling_of(rope));
    if (!h_.rope_local) return {};
    if (!gemma() || h_.rope_local->scaling != RopeScaling::kNone) {
      return impossible("layers with a window have a rope of their own");
    }
    json_["rope_local_base_freq"] = shortest(h_.rope_local->theta);
    return {};
  }

  Result<Json> scaling_of(const RopeParams& rope) const {
    const int64_t original = rope.original_context > 0 ? rope.original_context : h_.context_length;
    switch (rope.scaling) {
      case RopeScaling::kNone:
        return Json();
      case RopeScaling::kLinear:
        return Json{{"rope_type", "linear"}, {"factor", shortest(rope.factor)}};
      case RopeScaling::kLlama3:
        return Json{{"rope_type", "llama3"},
                    {"factor", shortest(rope.factor)},
                    {"low_freq_factor", rope.low_freq_factor},
                    {"high_freq_factor", rope.high_freq_factor},
                    {"original_max_position_embeddings", original}};
      case RopeScaling::kYarn: {
        Json json = {{"rope_type", "yarn"},
                     {"factor", shortest(rope.factor)},
                     {"original_max_position_embeddings", original},
                     {"beta_fast", shortest(rope.beta_fast)},
                     {"beta_slow", shortest(rope.beta_slow)}};
        if (!rope.truncate) json["truncate"] = false;
        if (rope.attention_factor) json["attention_factor"] = *rope.attention_factor;
        if (rope.mscale) json["mscale"] = shortest(*rope.mscale);
        if (rope.mscale_all_dim) json["mscale_all_dim"] = shortest(*rope.mscale_all_dim);
        return json;
      }
      case RopeScaling::kLongrope:
      case RopeScaling::kDynamic:
        break;
    }
    return impossible("the rope scaling of this model is longrope or dynamic");
  }

  Status add_window() {
    const bool slides_at_all = h_.sliding_window > 0;
    if (slides_at_all) json_["sliding_window"] = h_.sliding_window;
    if (mistral()) {
      const bool all = std::ranges::find(h_.layer_slides, false) == h_.layer_slides.end();
      return all ? Status() : impossible("only some of the layers have a sliding window");
    }
    if (h_.architecture == "qwen2" || h_.architecture == "qwen3") json_["use_sliding_window"] = slides_at_all;
    if (!slides_at_all && !gemma()) return {};
    std::vector<std::string> types;
    for (const bool slides : h_.layer_slides) types.push_back(slides ? "sliding_attention" : "full_attention");
    json_["layer_types"] = types;
    return {};
  }

  Status add_attention() {
    json_["attention_dropout"] = 0.0;
    if (!gemma()) {
      const bool plain = !h_.attention_scale && h_.attention_softcap == 0.0f && h_.final_softcap == 0.0f;
      return plain ? Status() : impossible("attention or logits are scaled or capped");
    }
    // The scale is this number's -1/2 power; published models have whole ones.
    double scalar = static_cast<double>(h_.head_dim);
    if (h_.attention_scale) {
      const double exact = 1.0 / (static_cast<double>(*h_.attention_scale) * static_cast<double>(*h_.attention_scale));
      scalar = std::fabs(std::round(exact) - exact) < 1e-4 * exact ? std::round(exact) : exact;
    }
    json_["query_pre_attn_scalar"] = scalar;
    if (scalar == std::round(scalar)) json_["query_pre_attn_scalar"] = static_cast<int64_t>(scalar);
    const auto cap = [](float value) { return value == 0.0f ? Json() : Json(shortest(static_cast<double>(value))); };
    json_["attn_logit_softcapping"] = cap(h_.attention_softcap);
    json_["final_logit_softcapping"] = cap(h_.final_softcap);
    return {};
  }

  // Qwen2's are implied by its class.
  Status add_biases() {
    if (h_.architecture == "qwen2") return {};
    const auto layers_with = [&](std::string_view module) {
      int64_t count = 0;
      for (int64_t layer = 0; layer < h_.layers; ++layer) {
        count += source_.find("blk." + std::to_string(layer) + "." + std::string(module) + ".bias") != nullptr;
      }
      return count;
    };
    const bool attention = layers_with("attn_q") > 0, mlp = layers_with("ffn_gate") > 0;
    bool together = true;
    for (const std::string_view module :
         {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
      const bool wanted = module.starts_with("attn") ? attention : mlp;
      together = together && layers_with(module) == (wanted ? h_.layers : 0);
    }
    const bool qwen3 = h_.architecture == "qwen3";
    if (!together || ((mistral() || gemma()) && (attention || mlp)) || (qwen3 && mlp)) {
      return impossible("only some of the linears have a bias");
    }
    const bool llama = h_.architecture == "llama" && !mistral();
    if (llama || qwen3) json_["attention_bias"] = attention;
    if (llama) json_["mlp_bias"] = mlp;
    return {};
  }

  const Checkpoint& source_;
  const Hparams& h_;
  Json json_ = Json::object();
};

// The text model alone where the directory holds it inside a multimodal one, whose other parts are not written.
Json text_model_config(Json config) {
  const auto nested = config.find("text_config");
  if (nested == config.end() || !nested->is_object()) return config;
  Json text = *nested;
  const auto type = text.find("model_type");
  if (type != text.end() && type->is_string()) {
    const std::string_view model_class = class_of(type->get_ref<const std::string&>());
    if (!model_class.empty()) text["architectures"] = Json::array({model_class});
  }
  for (const char* key : {"eos_token_id", "bos_token_id", "pad_token_id", "tie_word_embeddings", "_name_or_path"}) {
    const auto outer = config.find(key);
    if (outer != config.end() && !outer->is_null()) text[key] = *outer;
  }
  return text;
}

}  // namespace

Result<std::string> hf_config_text(const Checkpoint& source, DType dtype, const std::string& quantization) {
  Json config;
  if (const std::string* own = source.document("config.json")) {
    config = text_model_config(Json::parse(*own, nullptr, /*allow_exceptions=*/false));
    if (!config.is_object()) return corrupt(source.path() + "/config.json: is not a JSON object");
    for (const char* key : {"quantization_config", "compression_config"}) config.erase(key);
  } else {
    QUIRE_ASSIGN_OR_RETURN(config, ConfigMaker(source).make());
  }
  const char* dtype_key = config.contains("dtype") && !config.contains("torch_dtype") ? "dtype" : "torch_dtype";
  config[dtype_key] = dtype_name(dtype);
  if (!quantization.empty()) config["quantization_config"] = Json::parse(quantization, nullptr, false);
  return config.dump(2) + "\n";
}

std::string hf_generation_config_text(const Checkpoint& source) {
  if (const std::string* own = source.document("generation_config.json")) return *own;
  if (source.document("config.json") != nullptr) return {};
  Json json = Json::object();
  add_token_ids(source, json);
  const Hparams& h = source.hparams();
  const bool greedy = h.default_temperature == 0.0f;
  if (h.default_temperature || h.default_top_k || h.default_top_p || h.default_min_p) json["do_sample"] = !greedy;
  if (h.default_temperature && !greedy) json["temperature"] = shortest(static_cast<double>(*h.default_temperature));
  if (h.default_top_k) json["top_k"] = *h.default_top_k;
  if (h.default_top_p) json["top_p"] = shortest(static_cast<double>(*h.default_top_p));
  if (h.default_min_p) json["min_p"] = shortest(static_cast<double>(*h.default_min_p));
  if (h.default_repetition_penalty) {
    json["repetition_penalty"] = shortest(static_cast<double>(*h.default_repetition_penalty));
  }
  return json.dump(2) + "\n";
}

}  // namespace quire
