// A model before its weights: what its files say, checked, and what a device would make of it.
//
// The folder: from a checkpoint and options to what a model will take and hold - sizes, memory plans, the loaded model.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "capacity/model_options.h"
#include "device/device_sizes.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quire {

// What planners need. No thread is made for it.
struct ModelHeaders {
  ModelOptions options;
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
  std::unique_ptr<DeviceSizes> sizes;  // of the device that the options ask for
};

// Fails on a family that quire does not know, and on a context or head that the model does not have.
Result<ModelHeaders> open_headers(const ModelOptions& options);

struct OpenedModel : ModelHeaders {
  std::unique_ptr<Tokenizer> tokenizer;
};
Result<OpenedModel> open_model(const ModelOptions& options);

// The model's chat template, or `source` (Jinja) in its place; none: there is neither.
Result<std::optional<ChatTemplate>> open_chat_template(const Checkpoint& checkpoint,
                                                       std::optional<std::string> source = std::nullopt);

}  // namespace quire
