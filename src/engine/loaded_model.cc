#include "engine/loaded_model.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <utility>

#include "engine/model_setup.h"

namespace quire {
namespace {

// Prose, a list, code and figures: what a head is compared on.
constexpr std::string_view kHeadText =
    "The ferry leaves at a quarter past seven, unless the fog is thick; then everybody waits in the small café by the "
    "harbour, where the owner knows most of them by name. \"You could have stayed in bed,\" she says, and pours the "
    "coffee anyway.\n\nWhat to bring:\n1. a warm coat\n2. the letter of 14 March 1987\n3. 250 grams of butter\n\n"
    "def mean(values):\n    \"\"\"Returns the arithmetic mean.\"\"\"\n    return sum(values) / len(values)\n\n"
    "Water boils at 100 degrees Celsius at sea level, but at 2,000 metres it takes only about 93 degrees. That is why "
    "beans cook slowly in the mountains.";

Result<std::string> head_note(Model& model, const Tokenizer& tokenizer, DType head) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer.encode(kHeadText, {.add_special = true}));
  tokens.resize(std::min(tokens.size(), static_cast<size_t>(model.config().context_length)));
  QUIRE_ASSIGN_OR_RETURN(const double divergence, model.head_divergence(tokens));
  char text[160];
  std::snprintf(text, sizeof text,
                "head repacked as %s: mean KL divergence from the stored one %.2g nats (a text of %zu tokens)",
                std::string(dtype_info(head).name).c_str(), divergence, tokens.size());
  return std::string(text);
}

}  // namespace

Result<LoadedModel> load_model(const Checkpoint& checkpoint, const ModelConfig& config, const Tokenizer& tokenizer,
                               const ModelOptions& options, ModelLimits limits,
                               const std::function<void(double)>& progress) {
  QUIRE_ASSIGN_OR_RETURN(auto device, make_device(options));
  limits.weights = weight_options(options);
  LoadedModel loaded;
  QUIRE_ASSIGN_OR_RETURN(loaded.model, Model::load(checkpoint, config, std::move(device), limits, progress));
  if (!limits.weights.packed_file.empty()) {
    loaded.notes.push_back(
        (loaded.model->weights_from_packed_file() ? "weights copied from " : "packed weights kept in ") +
        limits.weights.packed_file);
  }
  if (options.head.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(std::string note, head_note(*loaded.model, tokenizer, *options.head));
    loaded.notes.push_back(std::move(note));
  }
  return loaded;
}

}  // namespace quire
