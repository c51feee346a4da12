#include "eval/kv_divergence.h"

#include <array>
#include <memory>

#include "capacity/model_setup.h"
#include "eval/evaluate.h"
#include "eval/subject.h"
#include "text/shipped_texts.h"

namespace quire {
namespace {

constexpr int64_t kWindow = 512;

// The type that auto stands for.
KvDtype kv_of(const ModelOptions& options) {
  if (options.kv_dtype != KvDtype::kAuto) return options.kv_dtype;
  return options.compute == ComputeMode::kF32 ? KvDtype::kF32 : KvDtype::kBf16;
}

EvalModel eval_model(EvalSubject& subject, const char* name) {
  return {.name = name, .model = &subject.model(), .max_rows = kEvalStepRows};
}

}  // namespace

Result<KvDivergence> measure_kv_divergence(const ModelOptions& options, double seconds) {
  if (kv_of(options) == KvDtype::kF32) return KvDivergence{};
  // Rounded activations would add a noise of their own, which is larger than what is sought.
  const ModelOptions exact = exact_options(options);
  ModelOptions rounded = exact;
  rounded.kv_dtype = kv_of(options);
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<EvalSubject> candidate, EvalSubject::open(rounded));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<EvalSubject> reference, EvalSubject::open(exact));
  QUIRE_ASSIGN_OR_RETURN(EvalText text, EvalText::create("evaluation.txt of quire", evaluation_text(),
                                                         candidate->tokenizer(), kWindow, 0));
  text.score_all();
  QUIRE_RETURN_IF_ERROR(candidate->load(kWindow, nullptr));
  QUIRE_RETURN_IF_ERROR(reference->load_sharing(*candidate, kWindow));
  const EvalModel with_exact_kv = eval_model(*reference, "f32 KV");
  const std::array candidates = {eval_model(*candidate, "the KV type asked for")};
  QUIRE_ASSIGN_OR_RETURN(const Evaluation result,
                         evaluate(&with_exact_kv, candidates, text, {.max_seconds = seconds, .progress = nullptr}));
  const std::vector<WindowScore>& windows = result.candidates.front();
  const double kl = mean_kl(windows).value;
  return KvDivergence{
      .kl = kl, .kl_upper = mean_kl_upper(windows).value_or(kl), .tokens = result.windows * text.scored_per_window()};
}

}  // namespace quire
