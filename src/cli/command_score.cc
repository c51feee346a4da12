#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/input.h"
#include "cli/jsonl.h"
#include "cli/terminal.h"
#include "engine/generator.h"

namespace quire {
namespace {

constexpr int kTopCandidates = 20;
constexpr size_t kShownCandidates = 5;

Result<JsonObject> answer(Generator& generator, JsonRequest& request) {
  QUIRE_ASSIGN_OR_RETURN(const auto ids, request.take_ids("ids"));
  QUIRE_RETURN_IF_ERROR(request.finish());
  if (!ids) return invalid_argument("the request has no \"ids\"");
  QUIRE_ASSIGN_OR_RETURN(const ScoreResult result, generator.score(*ids, kTopCandidates));
  std::vector<std::pair<int32_t, float>> top;
  for (const ScoreResult::Candidate& candidate : result.top) top.emplace_back(candidate.id, candidate.logprob);
  JsonObject object;
  object.reals("next_logprob", result.next_logprob).pairs("top", top);
  return object;
}

std::string fixed(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4f", value);
  return buffer;
}

void print(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, const ScoreResult& result) {
  const auto piece = [&](int32_t id) { return visible_text(tokenizer.token_bytes(id, true)); };
  std::vector<std::vector<std::string>> rows = {{"id", "logprob", "token"}};
  for (size_t i = 0; i < ids.size(); ++i) {
    rows.push_back({std::to_string(ids[i]), i == 0 ? "" : fixed(result.next_logprob[i - 1]), piece(ids[i])});
  }
  std::fputs(table_text(rows, "", "rrl").c_str(), stdout);
  if (!result.next_logprob.empty()) {
    const double sum = std::accumulate(result.next_logprob.begin(), result.next_logprob.end(), 0.0);
    const auto scored = static_cast<int64_t>(result.next_logprob.size());
    std::printf("\nperplexity %.3f over %s\n", std::exp(-sum / static_cast<double>(scored)),
                counted(scored, "token").c_str());
  }
  rows = {};
  for (size_t i = 0; i < result.top.size() && i < kShownCandidates; ++i) {
    rows.push_back({std::to_string(result.top[i].id), fixed(result.top[i].logprob), piece(result.top[i].id)});
  }
  std::printf("most likely next:\n%s", table_text(rows, "  ", "rrl").c_str());
}

}  // namespace

Status command_score(const Invocation& invocation) {
  const Options& options = invocation.options;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator, open_generator(options));
  if (options.jsonl) return answer_lines([&](JsonRequest& request) { return answer(*generator, request); });
  QUIRE_ASSIGN_OR_RETURN(const std::string text, argument_or_input(invocation.text, "text"));
  QUIRE_ASSIGN_OR_RETURN(const auto ids, generator->tokenizer().encode(text, {.add_special = true}));
  QUIRE_RETURN_IF_ERROR(generator->check_prompt(ids));
  QUIRE_RETURN_IF_ERROR(load_with_progress(*generator));
  QUIRE_ASSIGN_OR_RETURN(const ScoreResult result, generator->score(ids, kTopCandidates));
  print(generator->tokenizer(), ids, result);
  return {};
}

}  // namespace quire
