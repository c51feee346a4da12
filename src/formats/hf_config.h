// Hparams from a Hugging Face directory's config.json and generation_config.json. Defaults of absent keys, and which key
// wins where two contradict each other, are those of transformers' configuration classes (5.24).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "formats/families.h"
#include "formats/hparams.h"

namespace quire {

struct HfConfigTexts {
  std::string directory;                           // for messages
  const std::string* config = nullptr;             // config.json; null: absent
  const std::string* generation_config = nullptr;  // generation_config.json; null: absent
};

struct HfModelConfig {
  Hparams hparams;
  const Family* family = nullptr;
  BiasRules biases;
  std::vector<std::string> remarks;  // as Checkpoint::remarks()
};

Result<HfModelConfig> read_hf_config(const HfConfigTexts& texts);

// Architecture (the model_type), vocabulary size and end-of-generation tokens, for any model; config.json may be absent.
Result<Hparams> read_hf_vocabulary_hparams(const HfConfigTexts& texts);

}  // namespace quire
