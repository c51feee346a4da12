#include "eval/prove.h"

#include <memory>
#include <string>

#include "base/machine.h"
#include "capacity/loaded_model.h"
#include "eval/evaluate.h"
#include "eval/subject.h"
#include "formats/store_notes.h"
#include "text/shipped_texts.h"

namespace quire {
namespace {

constexpr int64_t kWindow = 512;

Status check_memory(const EvalSubject& a, const EvalSubject& b) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t first, a.planned_bytes(kWindow));
  QUIRE_ASSIGN_OR_RETURN(const int64_t second, b.planned_bytes(kWindow));
  const int64_t available = available_memory_bytes();
  if (first + second <= available) return {};
  const auto mib = [](int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  return resource_exhausted("comparing " + a.options().model_path + " with its original takes " + mib(first + second) +
                            ", and " + mib(available) + " are available");
}

}  // namespace

Result<Proof> prove_quantization(const ProveRequest& request) {
  ModelOptions exact = exact_options(request.options);
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<EvalSubject> model, EvalSubject::open(exact));
  exact.model_path = request.original;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<EvalSubject> original, EvalSubject::open(exact));
  const std::string name = "evaluation.txt of quire";
  QUIRE_ASSIGN_OR_RETURN(EvalText text,
                         EvalText::create(name, evaluation_text(), model->tokenizer(), kWindow, request.tokens));
  text.score_all();
  QUIRE_RETURN_IF_ERROR(check_memory(*model, *original));
  QUIRE_RETURN_IF_ERROR(model->load(kWindow, nullptr));
  QUIRE_RETURN_IF_ERROR(original->load(kWindow, nullptr));
  CheckpointNotes notes;
  QUIRE_ASSIGN_OR_RETURN(const auto passages, k_factor_passages(model->tokenizer()));
  QUIRE_ASSIGN_OR_RETURN(notes.k_factors, model->model().measure_k_factors(passages));
  const EvalModel before = {.name = request.original, .model = &original->model(), .max_rows = kEvalStepRows};
  const EvalModel after = {.name = request.options.model_path, .model = &model->model(), .max_rows = kEvalStepRows};
  QUIRE_ASSIGN_OR_RETURN(const Evaluation result, evaluate(&before, {&after, 1}, text, {.progress = request.progress}));
  const Proof proof = proof_of(result, text, name, request.text_sha256);
  notes.proof = proof_text(proof);
  QUIRE_RETURN_IF_ERROR(store_notes(model->checkpoint(), notes));
  return proof;
}

}  // namespace quire
