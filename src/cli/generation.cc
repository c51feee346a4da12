#include "cli/generation.h"

#include <cstdio>
#include <utility>

#include "base/units.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "engine/sampling_defaults.h"

namespace quire {
Result<std::unique_ptr<Generator>> open_generator(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Generator> generator, Generator::open(model_options(options, path)));
  note_remarks(generator->checkpoint(), &generator->tokenizer());
  return generator;
}

Status load_with_progress(Generator& generator) {
  {
    ProgressLine line;
    QUIRE_RETURN_IF_ERROR(generator.load([&](std::string_view phase, double fraction) { line.show(phase, fraction); }));
  }
  for (const std::string& text : generator.load_notes()) note(text);
  return {};
}

Result<Request> generate_request(const Options& options, const Hparams& hparams, std::vector<int32_t> prompt) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = options.max_tokens.value_or(-1);
  request.sampling = sampling_params(options, hparams);
  QUIRE_RETURN_IF_ERROR(request.sampling.validate());
  QUIRE_RETURN_IF_ERROR(set_ends(options, request));
  return request;
}

std::string timings_text(const RequestTimings& timings) {
  const auto speed = [](double tokens_per_s) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.1f tok/s", tokens_per_s);
    return std::string(buffer);
  };
  char ttft[48];
  std::snprintf(ttft, sizeof ttft, ", first token after %.0f ms", timings.ttft_ms);
  std::string text = "prompt " + counted(timings.prompt_tokens, "token");
  if (timings.cached_tokens > 0) text += " (" + count_text(timings.cached_tokens) + " cached)";
  text += ttft + (", prefill " + speed(timings.prefill_per_second()));
  text += "; answer " + counted(timings.generated_tokens, "token");
  if (timings.decoded_tokens() > 0) text += ", decode " + speed(timings.decode_per_second());
  return text;
}

bool seed_was_drawn(const Options& options, const Request& request) {
  return !options.seed && request.sampling.temperature > 0;
}

std::string plan_text(const MemoryPlan& plan, int64_t request_bytes) {
  std::string text = "memory: weights " + bytes_text(plan.weight_bytes) + ", KV " + bytes_text(plan.kv_bytes) +
                     ", workspace " + bytes_text(plan.workspace_bytes) + ", tokenizer " +
                     bytes_text(plan.tokenizer_bytes) + ": " + bytes_text(plan.total_bytes()) + " of " +
                     bytes_text(plan.budget_bytes);
  if (request_bytes > 0) text += "; up to " + bytes_text(request_bytes) + " more for requests";
  return text + "; context " + count_text(plan.context) + " tokens";
}

}  // namespace quire
