// A model loaded as its options ask, and what there is to say about it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capacity/opened_model.h"
#include "formats/checkpoint.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace quire {

struct LoadedModel {
  std::unique_ptr<Model> model;
  // Sentences for people: what a smaller head costs, where packed weights and K factors came from.
  std::vector<std::string> notes;
};

// Of all that changes K and V beside the tokens: the model, how it computes, what pages hold, and the K factors.
std::string kv_fingerprint(const ModelOptions& options, const Model& model);

// What K factors of int8 pages are chosen on (Model::measure_k_factors): passages of the shipped calibration text.
Result<std::vector<std::vector<int32_t>>> k_factor_passages(const Tokenizer& tokenizer);

// Sets the factors for K of a model with int8 pages, none of which is in use yet: the file's, or else measured. Returns a
// sentence for people that says which. Fails on factors that are not for such a model.
Result<std::string> set_k_factors(Model& model, const Checkpoint& checkpoint, const Tokenizer& tokenizer);

// `limits.weights` is set here. `progress` may be null.
Result<LoadedModel> load_model(const OpenedModel& opened, ModelLimits limits,
                               const std::function<void(double)>& progress);

}  // namespace quire
