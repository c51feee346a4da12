#include "formats/hf_quantization.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/messages.h"

namespace quire {
namespace {

constexpr int64_t kMaxGroup = 1 << 20;
constexpr int64_t kAwqDefaultGroup = 128;
constexpr std::string_view kPatternPrefix = "re:";

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

Status not_read(const HfJson& json, const std::string& key, const std::string& value, const std::string& known) {
  return unsupported(json.where() + ": " + quote(key) + " is " + quote(value) + ", which quire cannot read (" + known +
                     "); convert the model, or take another quantization of it");
}

}  // namespace

bool HfQuantization::Target::matches(std::string_view module) const {
  switch (kind) {
    case Kind::kEveryLinear:
      return true;
    case Kind::kName:
      return module == text || (module.starts_with(text) && module.substr(text.size()).starts_with('.')) ||
             module.ends_with("." + text);
    case Kind::kPart:
      return module.find(text) != std::string_view::npos;
    case Kind::kPattern:
      return pattern->matches_start(module);
  }
  return false;
}

class HfQuantizationReader {
 public:
  explicit HfQuantizationReader(const HfJson& json) : json_(json) { out_.where_ = json.where(); }

  Result<HfQuantization> read() {
    QUIRE_ASSIGN_OR_RETURN(const std::string method, read_first({"quant_method", "method"}));
    if (method == "gptq") {
      QUIRE_RETURN_IF_ERROR(read_gptq());
    } else if (method == "awq") {
      QUIRE_RETURN_IF_ERROR(read_awq());
    } else if (method == "compressed-tensors") {
      QUIRE_RETURN_IF_ERROR(read_compressed_tensors());
    } else if (method == "fp8") {
      QUIRE_RETURN_IF_ERROR(read_fp8());
    } else if (method == "auto-round" || method == "auto_round" || method == "intel/auto-round") {
      QUIRE_RETURN_IF_ERROR(read_auto_round());
    } else if (method.empty() && json_.has("w_bit")) {
      QUIRE_RETURN_IF_ERROR(read_awq());
    } else if (method.empty() && json_.has("bits")) {
      QUIRE_RETURN_IF_ERROR(read_gptq());
    } else {
      return not_read(json_, "quant_method", method, "gptq, awq, compressed-tensors, fp8, auto-round");
    }
    return std::move(out_);
  }

 private:
  using Target = HfQuantization::Target;
  using Rule = HfQuantization::Rule;

  // The first of these keys that is there, in lower case; empty: none.
  Result<std::string> read_first(std::initializer_list<const char*> keys) const {
    for (const char* key : keys) {
      QUIRE_ASSIGN_OR_RETURN(const auto value, json_.find_string(key));
      if (value) return lower(*value);
    }
    return std::string();
  }

  static Result<int> bits_among(const HfJson& json, const std::string& key, std::initializer_list<int> known) {
    QUIRE_ASSIGN_OR_RETURN(const auto bits, json.find_int(key));
    if (!bits) return json.error(key, "is missing");
    std::string names;
    for (const int each : known) {
      if (*bits == each) return each;
      names += (names.empty() ? "" : ", ") + std::to_string(each);
    }
    return not_read(json, key, std::to_string(*bits), names);
  }

  // 0: the whole row.
  static Result<int64_t> group_of(const HfJson& json, const std::string& key, int64_t fallback) {
    QUIRE_ASSIGN_OR_RETURN(const auto given, json.find_int(key));
    const int64_t group = given.value_or(fallback);
    if (group == -1) return int64_t{0};
    if (group < 1 || group > kMaxGroup) return json.error(key, "is " + std::to_string(group));
    if (group % 32 != 0) return not_read(json, key, std::to_string(group), "-1 and multiples of 32");
    return group;
  }

  static Result<Target> named(const HfJson& json, const std::string& key, const std::string& text) {
    Target target{.kind = Target::Kind::kName, .text = text, .pattern = std::nullopt};
    if (text == "Linear") {
      target.kind = Target::Kind::kEveryLinear;
    } else if (text.starts_with(kPatternPrefix)) {
      target.kind = Target::Kind::kPattern;
      auto pattern = ModulePattern::parse(std::string_view(text).substr(kPatternPrefix.size()));
      if (!pattern.ok()) {
        return Status(pattern.status().code(), json.where() + ": " + quote(key) + ": " + pattern.status().message());
      }
      target.pattern = std::move(*pattern);
    }
    return target;
  }

  static Result<std::vector<Target>> targets_of(const HfJson& json, const std::string& key) {
    std::vector<Target> targets;
    QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, json.find_strings(key));
    for (const std::string& text : texts) {
      if (text.empty()) return json.error(key, "holds an empty name");
      QUIRE_ASSIGN_OR_RETURN(Target target, named(json, key, text));
      targets.push_back(std::move(target));
    }
    return targets;
  }

  void add_rule_for_all(const QuantScheme& scheme) {
    out_.rules_.push_back({{Target{.kind = Target::Kind::kEveryLinear, .text = {}, .pattern = std::nullopt}}, scheme});
  }

  Status read_gptq() {
    QUIRE_ASSIGN_OR_RETURN(const std::string format, read_first({"checkpoint_format", "format"}));
    if (!format.empty() && format != "gptq" && format != "gptq_v2") {
      return not_read(json_, json_.has("checkpoint_format") ? "checkpoint_format" : "format", format, "gptq, gptq_v2");
    }
    QUIRE_ASSIGN_OR_RETURN(const auto marlin, json_.find_bool("is_marlin_format"));
    if (marlin.value_or(false)) return not_read(json_, "is_marlin_format", "true", "gptq, gptq_v2");
    QUIRE_RETURN_IF_ERROR(check_words());
    QuantScheme scheme{.layout = QuantScheme::Layout::kGptq};
    scheme.zeros_less_one = format != "gptq_v2";
    scheme.method = scheme.zeros_less_one ? "GPTQ" : "GPTQ v2";
    QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(json_, "bits", {2, 3, 4, 8}));
    QUIRE_ASSIGN_OR_RETURN(scheme.group, group_of(json_, "group_size", -1));
    QUIRE_ASSIGN_OR_RETURN(const auto symmetric, json_.find_bool("sym"));
    scheme.symmetric = symmetric.value_or(true);
    QUIRE_ASSIGN_OR_RETURN(const auto desc_act, json_.find_bool("desc_act"));
    QUIRE_ASSIGN_OR_RETURN(const auto static_groups, json_.find_bool("static_groups"));
    out_.desc_act_ = desc_act.value_or(false) && !static_groups.value_or(false);
    add_rule_for_all(scheme);
    return read_dynamic(scheme);
  }

  // AutoRound stores in the layouts of others, and may keep settings of its own for some modules.
  Status read_auto_round() {
    QUIRE_ASSIGN_OR_RETURN(const std::string packing, read_first({"packing_format"}));
    QUIRE_ASSIGN_OR_RETURN(const auto type, json_.find_string("data_type"));
    if (type && *type != "int") return not_read(json_, "data_type", *type, "int");
    if (packing.ends_with("auto_gptq")) {
      QUIRE_RETURN_IF_ERROR(read_gptq());
    } else if (packing.ends_with("auto_awq")) {
      QUIRE_RETURN_IF_ERROR(read_awq());
    } else {
      return not_read(json_, "packing_format", packing, "auto_round:auto_gptq, auto_round:auto_awq");
    }
    QUIRE_ASSIGN_OR_RETURN(const auto modules, json_.find_objects("extra_config"));
    for (const auto& [name, settings] : modules) {
      Rule rule;
      rule.targets.push_back({.kind = Target::Kind::kName, .text = name, .pattern = std::nullopt});
      QUIRE_ASSIGN_OR_RETURN(const auto bits, settings.find_int("bits"));
      if (bits.value_or(0) < 16) {
        QuantScheme scheme = *out_.rules_.front().scheme;
        if (bits) {
          QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(settings, "bits", {2, 3, 4, 8}));
        }
        QUIRE_ASSIGN_OR_RETURN(scheme.group, group_of(settings, "group_size", scheme.group == 0 ? -1 : scheme.group));
        QUIRE_ASSIGN_OR_RETURN(const auto symmetric, settings.find_bool("sym"));
        scheme.symmetric = symmetric.value_or(scheme.symmetric);
        rule.scheme = scheme;
      }
      out_.overrides_.push_back(std::move(rule));
    }
    return {};
  }

  Status check_words() const {
    QUIRE_ASSIGN_OR_RETURN(const auto words, json_.find_string("pack_dtype"));
    if (words && *words != "int32") return not_read(json_, "pack_dtype", *words, "int32");
    return {};
  }

  // Patterns of modules that are quantized in another way, or with "-:" not at all.
  Status read_dynamic(const QuantScheme& usual) {
    QUIRE_ASSIGN_OR_RETURN(const auto entries, json_.find_objects("dynamic"));
    for (const auto& [name, overrides] : entries) {
      std::string text = name;
      const bool skip = text.starts_with("-:");
      if (skip || text.starts_with("+:")) text.erase(0, 2);
      QUIRE_ASSIGN_OR_RETURN(Target target, named(json_, "dynamic", std::string(kPatternPrefix) + text));
      Rule rule;
      rule.targets.push_back(std::move(target));
      if (!skip) {
        QuantScheme scheme = usual;
        if (overrides.has("bits")) {
          QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(overrides, "bits", {2, 3, 4, 8}));
        }
        QUIRE_ASSIGN_OR_RETURN(scheme.group, group_of(overrides, "group_size", usual.group == 0 ? -1 : usual.group));
        QUIRE_ASSIGN_OR_RETURN(const auto symmetric, overrides.find_bool("sym"));
        scheme.symmetric = symmetric.value_or(usual.symmetric);
        rule.scheme = scheme;
      }
      out_.overrides_.push_back(std::move(rule));
    }
    return {};
  }

  Status read_awq() {
    QUIRE_ASSIGN_OR_RETURN(const std::string version, read_first({"version", "checkpoint_format", "format"}));
    if (!version.empty() && version != "gemm") return not_read(json_, "version", version, "gemm");
    QUIRE_RETURN_IF_ERROR(check_words());
    QuantScheme scheme{.layout = QuantScheme::Layout::kAwq, .method = "AWQ"};
    QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(json_, json_.has("w_bit") ? "w_bit" : "bits", {4}));
    QUIRE_ASSIGN_OR_RETURN(
        scheme.group, group_of(json_, json_.has("q_group_size") ? "q_group_size" : "group_size", kAwqDefaultGroup));
    QUIRE_ASSIGN_OR_RETURN(const auto zero_point, json_.find_bool("zero_point"));
    scheme.symmetric = !zero_point.value_or(true);
    add_rule_for_all(scheme);
    QUIRE_ASSIGN_OR_RETURN(const auto skipped, json_.find_strings("modules_to_not_convert"));
    for (const std::string& text : skipped) {
      if (text.empty()) return json_.error("modules_to_not_convert", "holds an empty name");
      out_.skipped_.push_back({.kind = Target::Kind::kPart, .text = text, .pattern = std::nullopt});
    }
    return {};
  }

  Status read_fp8() {
    QuantScheme scheme{.layout = QuantScheme::Layout::kFp8, .method = "FP8", .bits = 8};
    QUIRE_ASSIGN_OR_RETURN(const auto element, json_.find_string("fmt"));
    if (element && *element != "e4m3" && *element != "float8_e4m3fn") return not_read(json_, "fmt", *element, "e4m3");
    QUIRE_ASSIGN_OR_RETURN(const auto block, json_.find_int_or_ints("weight_block_size"));
    if (!block.empty()) QUIRE_RETURN_IF_ERROR(read_block(json_, "weight_block_size", block, &scheme));
    add_rule_for_all(scheme);
    for (const char* key : {"ignored_layers", "modules_to_not_convert"}) {
      QUIRE_ASSIGN_OR_RETURN(std::vector<Target> skipped, targets_of(json_, key));
      for (Target& target : skipped) out_.skipped_.push_back(std::move(target));
    }
    return {};
  }

  static Status read_block(const HfJson& json, const std::string& key, const std::vector<int64_t>& block,
                           QuantScheme* scheme) {
    if (block.size() != 2 || block[0] < 1 || block[0] > kMaxGroup || block[1] < 1 || block[1] > kMaxGroup) {
      return json.error(key, "is not two positive sizes");
    }
    if (block[1] % 32 != 0) return not_read(json, key, std::to_string(block[1]), "multiples of 32 along a row");
    scheme->block_rows = block[0];
    scheme->group = block[1];
    return {};
  }

  Status read_compressed_tensors() {
    QUIRE_ASSIGN_OR_RETURN(const std::string format, read_first({"format"}));
    QUIRE_ASSIGN_OR_RETURN(const auto sparsity, json_.find_object("sparsity_config"));
    if (sparsity) {
      QUIRE_ASSIGN_OR_RETURN(const auto sparse, sparsity->find_string("format"));
      if (sparse && *sparse != "dense") return not_read(*sparsity, "format", *sparse, "dense");
    }
    QUIRE_ASSIGN_OR_RETURN(const auto transform, json_.find_object("transform_config"));
    if (transform) {
      QUIRE_ASSIGN_OR_RETURN(const auto groups, transform->find_objects("config_groups"));
      if (!groups.empty()) return not_read(*transform, "config_groups", groups[0].first, "none");
    }
    QUIRE_ASSIGN_OR_RETURN(const auto groups, json_.find_objects("config_groups"));
    if (groups.empty()) return json_.error("config_groups", "names no group");
    for (const auto& [name, group] : groups) {
      Rule rule;
      QUIRE_ASSIGN_OR_RETURN(rule.targets, targets_of(group, "targets"));
      if (rule.targets.empty()) return group.error("targets", "names no modules");
      QUIRE_ASSIGN_OR_RETURN(const auto own_format, group.find_string("format"));
      QUIRE_ASSIGN_OR_RETURN(rule.scheme, read_group(group, own_format ? lower(*own_format) : format));
      out_.rules_.push_back(std::move(rule));
    }
    QUIRE_ASSIGN_OR_RETURN(out_.skipped_, targets_of(json_, "ignore"));
    return {};
  }

  static Result<QuantScheme> read_group(const HfJson& group, const std::string& format) {
    QuantScheme scheme{.method = "compressed-tensors"};
    const bool naive = format == "naive-quantized";
    QUIRE_ASSIGN_OR_RETURN(const auto weights, group.find_object("weights"));
    if (!weights) return group.error("weights", "is missing");
    QUIRE_ASSIGN_OR_RETURN(const auto type, weights->find_string("type"));
    const bool floats = type.value_or("int") == "float";
    if (format == "pack-quantized" && !floats) {
      scheme.layout = QuantScheme::Layout::kPacked;
      QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(*weights, "num_bits", {2, 4, 8}));
    } else if ((format == "int-quantized" || naive) && !floats) {
      scheme.layout = QuantScheme::Layout::kInt8;
      QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(*weights, "num_bits", {8}));
    } else if ((format == "float-quantized" || naive) && floats) {
      scheme.layout = QuantScheme::Layout::kFp8;
      QUIRE_ASSIGN_OR_RETURN(scheme.bits, bits_among(*weights, "num_bits", {8}));
    } else {
      return not_read(group, "format", format,
                      "pack-quantized and int-quantized integers, float-quantized and naive-quantized");
    }
    QUIRE_ASSIGN_OR_RETURN(const auto symmetric, weights->find_bool("symmetric"));
    scheme.symmetric = symmetric.value_or(true);
    QUIRE_RETURN_IF_ERROR(read_strategy(*weights, &scheme));
    QUIRE_ASSIGN_OR_RETURN(const auto inputs, group.find_object("input_activations"));
    if (inputs) {
      QUIRE_ASSIGN_OR_RETURN(const auto input_type, inputs->find_string("type"));
      QUIRE_ASSIGN_OR_RETURN(const auto input_bits, inputs->find_int("num_bits"));
      scheme.token_scale = input_type.value_or("int") == "int" && input_bits.value_or(8) == 8 &&
                           scheme.layout != QuantScheme::Layout::kFp8 && scheme.bits == 8;
    }
    return scheme;
  }

  static Status read_strategy(const HfJson& weights, QuantScheme* scheme) {
    QUIRE_ASSIGN_OR_RETURN(const auto given, weights.find_string("strategy"));
    const std::string strategy = given.value_or(weights.has("group_size") ? "group" : "tensor");
    if (strategy == "channel" || strategy == "tensor") return {};
    if (strategy == "group") {
      if (!weights.has("group_size")) return weights.error("group_size", "is missing");
      QUIRE_ASSIGN_OR_RETURN(scheme->group, group_of(weights, "group_size", -1));
      return {};
    }
    if (strategy == "block" && scheme->layout == QuantScheme::Layout::kFp8) {
      QUIRE_ASSIGN_OR_RETURN(const auto block, weights.find_int_or_ints("block_structure"));
      return read_block(weights, "block_structure", block, scheme);
    }
    return not_read(weights, "strategy", strategy, "tensor, channel, group, and block for FP8");
  }

  const HfJson& json_;
  HfQuantization out_;
};

Result<std::optional<HfQuantization>> HfQuantization::read(const HfQuantizationTexts& texts) {
  std::optional<HfJson> beside;
  if (texts.quantize_config != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(beside, HfJson::parse(*texts.quantize_config, texts.directory + "/quantize_config.json"));
  }
  auto parsed = [&](const HfJson& json) -> Result<std::optional<HfQuantization>> {
    QUIRE_ASSIGN_OR_RETURN(HfQuantization read, HfQuantizationReader(json).read());
    for (const char* key : {"bits", "group_size", "desc_act", "sym", "checkpoint_format", "version"}) {
      if (!beside || !beside->has(key) || !json.has(key) || beside->same_value(json, key)) continue;
      read.remarks_.push_back(json.where() + ": " + quote(key) + " is " + json.value_text(key) +
                              ", which is used, but " + beside->value_text(key) + " in " + beside->where());
    }
    return std::optional<HfQuantization>(std::move(read));
  };
  if (texts.config != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const HfJson outer, HfJson::parse(*texts.config, texts.directory + "/config.json"));
    QUIRE_ASSIGN_OR_RETURN(const auto nested, outer.find_object("text_config"));
    for (const char* key : {"quantization_config", "compression_config"}) {
      QUIRE_ASSIGN_OR_RETURN(auto settings, outer.find_object(key));
      if (!settings && nested) {
        QUIRE_ASSIGN_OR_RETURN(settings, nested->find_object(key));
      }
      if (settings) return parsed(*settings);
    }
  }
  if (beside) return parsed(*beside);
  return std::optional<HfQuantization>();
}

Result<std::optional<QuantScheme>> HfQuantization::scheme_of(std::string_view module) const {
  const auto meant = [&](const std::vector<Target>& targets) {
    return std::ranges::any_of(targets, [&](const Target& target) { return target.matches(module); });
  };
  if (meant(skipped_)) return std::optional<QuantScheme>();
  const Rule* found = nullptr;
  for (const Rule& rule : overrides_) {
    if (!meant(rule.targets)) continue;
    if (found != nullptr) {
      return unsupported(where_ + ": two patterns of \"dynamic\" match the module " + quote(module) +
                         ", and which comes first is not kept; leave the one that applies");
    }
    found = &rule;
  }
  if (found != nullptr) return found->scheme;
  // A group that names the module goes before one that names its class.
  const auto by_class = [](const Rule& rule) {
    return std::ranges::all_of(rule.targets,
                               [](const Target& target) { return target.kind == Target::Kind::kEveryLinear; });
  };
  for (const bool classes : {false, true}) {
    for (const Rule& rule : rules_) {
      if (by_class(rule) == classes && meant(rule.targets)) return rule.scheme;
    }
  }
  return std::optional<QuantScheme>();
}

}  // namespace quire
