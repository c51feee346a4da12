#include "cli/answer.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "cli/generation.h"
#include "cli/terminal.h"
#include "cli/terminal_text.h"

namespace quire {
namespace {

bool write_out(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

}  // namespace

Result<GenerateResult> print_answer(Generator& generator, const Options& options, std::vector<int32_t> prompt,
                                    const InterruptScope& interrupt) {
  QUIRE_RETURN_IF_ERROR(generator.check_prompt(prompt));
  QUIRE_RETURN_IF_ERROR(load_with_progress(generator));
  QUIRE_ASSIGN_OR_RETURN(const Request request,
                         generate_request(options, generator.checkpoint().hparams(), std::move(prompt)));
  const bool terminal = is_terminal(stdout);
  TerminalText layout(shows_colours(stdout));
  bool written = true;
  const auto print = [&](std::string_view piece) {
    written = write_out(terminal ? layout.push(piece, terminal_columns(stdout)) : std::string(piece));
    return written && !interrupt.interrupted();
  };
  QUIRE_ASSIGN_OR_RETURN(GenerateResult result, generator.generate(request, print));
  if (written && terminal) written = write_out(layout.finish(terminal_columns(stdout)));
  if (!written) return io_error("standard output cannot be written: the answer was stopped");
  std::string report = timings_text(result.timings);
  if (seed_was_drawn(options, request)) report += "; seed " + std::to_string(request.sampling.seed);
  note(report);
  if (result.finish_reason == "length") {
    const bool by_limit = options.max_tokens && result.timings.generated_tokens >= *options.max_tokens;
    note(by_limit ? "The answer stopped at --max-tokens."
                  : "The context of " + count_text(generator.context()) + " tokens is full; see --context.");
  }
  return result;
}

}  // namespace quire
