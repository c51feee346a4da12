// A model loaded as its options ask, and what there is to say about it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_options.h"
#include "formats/checkpoint.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace quire {

struct LoadedModel {
  std::unique_ptr<Model> model;
  std::vector<std::string> notes;  // sentences for people: what a smaller head costs, where packed weights came from
};

// `limits.weights` is set here. `progress` may be null.
Result<LoadedModel> load_model(const Checkpoint& checkpoint, const ModelConfig& config, const Tokenizer& tokenizer,
                               const ModelOptions& options, ModelLimits limits,
                               const std::function<void(double)>& progress);

}  // namespace quire
