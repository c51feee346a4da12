// The quantization settings of a Hugging Face directory, from config.json's quantization_config (or compression_config),
// else quantize_config.json or quant_config.json: which modules are quantized, and how.
//
// Sources: AutoGPTQ's and GPTQModel's QuantizeConfig, AutoAWQ's AwqConfig, compressed-tensors' QuantizationConfig,
// transformers' FineGrainedFP8Config, AutoRound's
// packing formats. Methods and layouts that quire cannot read are errors that name them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/hf_json.h"
#include "formats/module_pattern.h"
#include "formats/quant_scheme.h"

namespace quire {

struct HfQuantizationTexts {
  std::string directory;                         // for messages
  const std::string* config = nullptr;           // config.json
  const std::string* quantize_config = nullptr;  // quantize_config.json or quant_config.json; null: absent
};

class HfQuantization {
 public:
  // Absent: the checkpoint states no quantization.
  static Result<std::optional<HfQuantization>> read(const HfQuantizationTexts& texts);

  // How `module` ("model.layers.3.self_attn.q_proj") is stored; absent: not quantized. Fails where the settings say two
  // things.
  Result<std::optional<QuantScheme>> scheme_of(std::string_view module) const;

  const std::string& where() const { return where_; }  // names the settings in messages
  bool desc_act() const { return desc_act_; }  // GPTQ: columns were quantized in another order than they stand in
  const std::vector<std::string>& remarks() const { return remarks_; }  // as Checkpoint::remarks()

 private:
  friend class HfQuantizationReader;

  // A module by its class, its name, a part of its name, or a pattern.
  struct Target {
    enum class Kind : uint8_t { kEveryLinear, kName, kPart, kPattern } kind = Kind::kName;
    std::string text;
    std::optional<ModulePattern> pattern;

    bool matches(std::string_view module) const;
  };
  struct Rule {
    std::vector<Target> targets;
    std::optional<QuantScheme> scheme;  // absent: not quantized
  };

  std::string where_;
  bool desc_act_ = false;
  std::vector<std::string> remarks_;
  std::vector<Target> skipped_;
  std::vector<Rule> overrides_;
  std::vector<Rule> rules_;
};

}  // namespace quire
