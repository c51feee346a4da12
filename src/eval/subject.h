// A model as evaluation uses it: its weights, pages for a step of windows, and nothing of a scheduler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "capacity/opened_model.h"
#include "formats/checkpoint.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace quire {

// Rows of the largest step that evaluation makes.
inline constexpr int64_t kEvalStepRows = 512;

// What a model without any approximation of its weights' own runs with: f32 activations, f32 KV, the head as stored.
ModelOptions exact_options(const ModelOptions& options);

// One model to be judged, or judged against. Owns everything it needs. One thread at a time.
class EvalSubject {
 public:
  // Reads headers and tokenizer; no weights yet. `options.context` is not used: a window sets what a sequence takes.
  static Result<std::unique_ptr<EvalSubject>> open(const ModelOptions& options);

  // Memory that load() will take, from headers alone. Fails on a window longer than the model's context.
  Result<int64_t> planned_bytes(int64_t window) const;
  Status load(int64_t window, const std::function<void(double)>& progress);
  // The same with the weights of `owner`, a subject of the same file and compute mode, which must outlive this.
  Status load_sharing(const EvalSubject& owner, int64_t window);

  const ModelOptions& options() const { return opened_.options; }
  const Checkpoint& checkpoint() const { return *opened_.checkpoint; }
  const Tokenizer& tokenizer() const { return *opened_.tokenizer; }
  int64_t vocab_size() const { return opened_.config.vocab_size; }
  const std::string& compute_summary() const { return compute_summary_; }  // "avx512, int8 activations, bf16 KV, ..."
  // What multiplies its matrices: "Q4_K: avx512 int4 x int8", by type; "scalar decode" where nothing fast does.
  const std::vector<std::string>& kernels() const { return kernels_; }
  const std::vector<std::string>& load_notes() const { return notes_; }
  Model& model() { return *model_; }  // after load()

 private:
  EvalSubject() = default;

  OpenedModel opened_;
  std::string compute_summary_;
  std::vector<std::string> kernels_;
  std::vector<std::string> notes_;
  std::unique_ptr<Model> model_;
};

// Whether two models can be compared token by token; the error has both counts, or the first text they read differently.
Status check_same_vocabulary(const EvalSubject& reference, const EvalSubject& candidate, std::string_view sample);

}  // namespace quire
