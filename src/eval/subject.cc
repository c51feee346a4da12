#include "eval/subject.h"

#include <algorithm>
#include <set>
#include <utility>

#include "capacity/loaded_model.h"
#include "capacity/memory_plan.h"
#include "capacity/model_setup.h"
#include "model/weights.h"

namespace quire {
namespace {

// Whole windows of one step, or a part of one window.
int64_t windows_per_step(int64_t window) { return std::max<int64_t>(1, kEvalStepRows / window); }

ModelLimits limits_for(const ModelConfig& config, int64_t window) {
  ModelLimits limits;
  limits.workspace = {.max_rows = std::min(kEvalStepRows, windows_per_step(window) * window), .max_context = window};
  const int64_t pages = windows_per_step(window) * ((window + kPageTokens - 1) / kPageTokens);
  limits.kv_pages.assign(config.kv_groups.size(), pages);
  return limits;
}

std::vector<std::string> kernels_of(const Checkpoint& checkpoint, const DeviceSizes& sizes) {
  std::set<std::string> seen;
  for (const TensorRef& tensor : checkpoint.tensors()) {
    if (tensor.rank < 2) continue;
    const std::string kernel = sizes.kernel_name(tensor.type());
    seen.insert(tensor.type_name() + ": " + (kernel.empty() ? "scalar decode" : kernel));
  }
  return {seen.begin(), seen.end()};
}

}  // namespace

ModelOptions exact_options(const ModelOptions& options) {
  ModelOptions exact = options;
  exact.compute = ComputeMode::kF32;
  exact.kv_dtype = KvDtype::kAuto;
  exact.attention = Attention::kFlash;
  exact.power_of_two_scales = false;
  exact.head = std::nullopt;
  exact.pack_cache.clear();
  return exact;
}

Result<std::unique_ptr<EvalSubject>> EvalSubject::open(const ModelOptions& options) {
  std::unique_ptr<EvalSubject> subject(new EvalSubject());
  QUIRE_ASSIGN_OR_RETURN(subject->opened_, open_model(options));
  const DeviceSizes& sizes = *subject->opened_.sizes;
  subject->compute_summary_ = sizes.description();
  subject->kernels_ = kernels_of(*subject->opened_.checkpoint, sizes);
  return subject;
}

Result<int64_t> EvalSubject::planned_bytes(int64_t window) const {
  const ModelConfig& config = opened_.config;
  if (window > config.context_length) {
    return out_of_range(opened_.options.model_path + ": a window of " + std::to_string(window) +
                        " tokens; this model was trained for at most " + std::to_string(config.context_length));
  }
  const std::optional<DType>& head = opened_.options.head;
  const ModelLimits limits = limits_for(config, window);
  return weight_bytes(config, *opened_.checkpoint, head, *opened_.sizes) + tokenizer_bytes(config.vocab_size) +
         step_bytes(opened_, linear_readers(config, *opened_.checkpoint, head), limits.workspace, 0) +
         kv_bytes(opened_, limits.kv_pages);
}

Status EvalSubject::load(int64_t window, const std::function<void(double)>& progress) {
  QUIRE_ASSIGN_OR_RETURN(LoadedModel loaded, load_model(opened_, limits_for(opened_.config, window), progress));
  model_ = std::move(loaded.model);
  notes_ = std::move(loaded.notes);
  return {};
}

Status EvalSubject::load_sharing(const EvalSubject& owner, int64_t window) {
  QUIRE_ASSIGN_OR_RETURN(auto device, make_device(opened_.options));
  ModelLimits limits = limits_for(opened_.config, window);
  limits.weights = weight_options(opened_.options);
  QUIRE_ASSIGN_OR_RETURN(model_, Model::share(*owner.model_, std::move(device), limits));
  return {};
}

Status check_same_vocabulary(const EvalSubject& reference, const EvalSubject& candidate, std::string_view sample) {
  const std::string both = candidate.options().model_path + " and " + reference.options().model_path;
  if (candidate.vocab_size() != reference.vocab_size()) {
    return invalid_argument(both + " cannot be compared: their vocabularies have " +
                            std::to_string(candidate.vocab_size()) + " and " + std::to_string(reference.vocab_size()) +
                            " tokens");
  }
  QUIRE_ASSIGN_OR_RETURN(const auto ids, candidate.tokenizer().encode(sample, {.add_special = true}));
  QUIRE_ASSIGN_OR_RETURN(const auto reference_ids, reference.tokenizer().encode(sample, {.add_special = true}));
  const auto [at, other] = std::mismatch(ids.begin(), ids.end(), reference_ids.begin(), reference_ids.end());
  if (at == ids.end() && other == reference_ids.end()) return {};
  return invalid_argument(both + " cannot be compared: they read the text as different tokens, from token " +
                          std::to_string(at - ids.begin()) + " on (" + std::to_string(ids.size()) + " and " +
                          std::to_string(reference_ids.size()) + " in all)");
}

}  // namespace quire
