// One model, one request at a time: what `quire run` and `quire score` use. The loop is the server's (EngineCore), driven
// on the caller's thread until the request has ended.
//
// Owns checkpoint, tokenizer, template, model, and KV pages for one sequence. Thread: one caller at a time; the caller's
// thread is worker 0 of the compute pool. What the pages hold of earlier requests is found again, in whole pages, so a
// chat that grows is not prefilled anew.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capacity/memory_plan.h"
#include "capacity/model_options.h"
#include "engine/event.h"
#include "engine/request.h"
#include "formats/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quire {

struct GenerateResult {
  std::vector<int32_t> ids;  // generated, without an ending EOS
  std::string text;
  std::string finish_reason;   // "stop", "length" or "cancelled"
  RequestTimings timings;      // of no token: times to the end
  int64_t scalar_linears = 0;  // products whose weights have no kernel of the instruction set in use
};

struct ScoreResult {
  using Candidate = TokenLogprob::Candidate;
  std::vector<float> next_logprob;  // log p(ids[i + 1] | ids[0..i]), one fewer than ids
  std::vector<Candidate> top;       // the most likely tokens after the last id, best first
};

class Generator {
 public:
  // Called with a phase ("loading weights") and its fraction done, for progress display.
  using Progress = std::function<void(std::string_view phase, double fraction)>;
  // Called with each piece of text as it becomes final; return false to stop the answer.
  using OnText = std::function<bool(std::string_view text)>;

  // Reads headers, tokenizer and template, and plans memory: fast, whatever the size of the weights.
  static Result<std::unique_ptr<Generator>> open(const ModelOptions& options);
  virtual ~Generator() = default;

  // Whether a prompt can be run at all (RequestLimits). Needs no weights.
  virtual Status check_prompt(std::span<const int32_t> ids) const = 0;
  // Packs the weights and takes the memory that was planned. The first generate() or score() does it otherwise.
  virtual Status load(const Progress& progress) = 0;
  virtual std::span<const std::string> load_notes() const = 0;  // sentences about how the model was loaded
  virtual std::string recording_end() const = 0;                // why --record wrote no more; empty: it did

  // Takes no more tokens than there is room for; the request's id means nothing here. One choice.
  virtual Result<GenerateResult> generate(Request request, const OnText& on_text) = 0;
  virtual Result<ScoreResult> score(std::span<const int32_t> ids, int top_n) = 0;

  virtual const Checkpoint& checkpoint() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate* chat_template() const = 0;  // null: the model carries none
  virtual const MemoryPlan& memory_plan() const = 0;
  virtual int64_t context() const = 0;                // tokens a sequence may reach, prompt included
  virtual std::string compute_summary() const = 0;    // "avx512, int8 activations, bf16 KV, 2 threads"
  virtual int64_t scalar_fallback_count() const = 0;  // linear calls on packed weights that fell to scalar decode
};

}  // namespace quire
