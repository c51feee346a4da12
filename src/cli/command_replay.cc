#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "engine/replay.h"

namespace quire {
namespace {

std::string list_text(const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) text += (text.empty() ? "" : ", ") + std::to_string(token);
  return text.empty() ? "nothing" : text;
}

Status difference(const std::string& path, const ReplayDifference& first) {
  const std::string step = path + ": step " + std::to_string(first.step) + " comes out otherwise: ";
  if (first.id == 0) return corrupt(step + "the tokens are equal, the logits are not");
  return corrupt(step + "sequence " + std::to_string(first.id) + " was sampled " + list_text(first.recorded) +
                 ", and now " + list_text(first.replayed));
}

}  // namespace

Status command_replay(const Invocation& invocation) {
  if (!invocation.text) return invalid_argument("replay needs the FILE that --record wrote");
  QUIRE_ASSIGN_OR_RETURN(RecordingReader reader, RecordingReader::open(*invocation.text));
  RecordedRun run = reader.run();
  if (invocation.texts.size() > 1) run.model.model_path = invocation.texts[1];
  std::unique_ptr<Executor> executor;
  {
    ProgressLine line;
    const auto progress = [&](double fraction) { line.show("loading weights", fraction); };
    QUIRE_ASSIGN_OR_RETURN(executor, load_recorded(run, static_cast<int>(invocation.options.threads), progress));
  }
  QUIRE_ASSIGN_OR_RETURN(const ReplayReport report, replay(reader, *executor));
  if (report.first.has_value()) return difference(*invocation.text, *report.first);
  if (report.cut_off) note(*invocation.text + " ends amid a step, which is left out.");
  std::printf("%s and %s came out the same\n", counted(report.steps, "step").c_str(),
              counted(report.tokens, "token").c_str());
  return {};
}

}  // namespace quire
