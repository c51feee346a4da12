#include "capacity/loaded_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "cache/siphash.h"
#include "capacity/model_setup.h"
#include "model/k_factors.h"
#include "text/shipped_texts.h"

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

// The text that K factors are chosen on: so many passages from all over the calibration text.
constexpr size_t kPassages = 8;
constexpr size_t kPassageTokens = 32;
constexpr size_t kPassageBytes = 512;

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

std::string kv_fingerprint(const ModelOptions& options, const Model& model) {
  const Hash128 factors = siphash128(HashKey{}, std::as_bytes(model.k_factors()));
  return options.model_path + "|" + model.device().sizes().description() + "|" + std::to_string(factors.low) + "-" +
         std::to_string(factors.high);
}

Result<std::vector<std::vector<int32_t>>> k_factor_passages(const Tokenizer& tokenizer) {
  const std::string_view text = calibration_text();
  std::vector<std::vector<int32_t>> passages;
  for (size_t i = 0; i < kPassages; ++i) {
    // From one space to another, so that no character is cut.
    const size_t first = text.find(' ', text.size() / kPassages * i);
    const size_t last = text.find(' ', first + kPassageBytes);
    QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> tokens,
                           tokenizer.encode(text.substr(first + 1, last - first - 1), {.add_special = true}));
    tokens.resize(std::min(tokens.size(), kPassageTokens));
    passages.push_back(std::move(tokens));
  }
  return passages;
}

Result<std::string> set_k_factors(Model& model, const Checkpoint& checkpoint, const Tokenizer& tokenizer) {
  const std::vector<float>& stored = checkpoint.notes().k_factors;
  if (!stored.empty()) {
    QUIRE_RETURN_IF_ERROR(check_k_factors(model.config(), stored, checkpoint.path()));
    model.set_k_factors(stored);
    return std::string("int8 KV: K factors from the model file");
  }
  const auto start = std::chrono::steady_clock::now();
  QUIRE_ASSIGN_OR_RETURN(const auto passages, k_factor_passages(tokenizer));
  QUIRE_ASSIGN_OR_RETURN(std::vector<float> factors, model.measure_k_factors(passages));
  model.set_k_factors(std::move(factors));
  size_t tokens = 0;
  for (const std::vector<int32_t>& passage : passages) tokens += passage.size();
  char text[120];
  std::snprintf(text, sizeof text, "int8 KV: K factors from the shipped text, %zu tokens, %.2f s", tokens,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return std::string(text);
}

Result<LoadedModel> load_model(const OpenedModel& opened, ModelLimits limits,
                               const std::function<void(double)>& progress) {
  const ModelOptions& options = opened.options;
  const Checkpoint& checkpoint = *opened.checkpoint;
  QUIRE_ASSIGN_OR_RETURN(auto device, make_device(options));
  limits.weights = weight_options(options);
  LoadedModel loaded;
  QUIRE_ASSIGN_OR_RETURN(loaded.model, Model::load(checkpoint, opened.config, std::move(device), limits, progress));
  loaded.notes = loaded.model->weight_notes();
  if (options.kv_dtype == KvDtype::kInt8 && options.k_factors) {
    QUIRE_ASSIGN_OR_RETURN(std::string note, set_k_factors(*loaded.model, checkpoint, *opened.tokenizer));
    loaded.notes.push_back(std::move(note));
  }
  if (options.head.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(std::string note, head_note(*loaded.model, *opened.tokenizer, *options.head));
    loaded.notes.push_back(std::move(note));
  }
  return loaded;
}

}  // namespace quire
