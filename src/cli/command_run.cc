#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/jsonl.h"
#include "cli/terminal.h"
#include "engine/generator.h"

namespace quire {
namespace {

Result<std::vector<int32_t>> prompt_ids(const Generator& generator, JsonRequest& request) {
  QUIRE_ASSIGN_OR_RETURN(const auto prompt, request.take_text("prompt"));
  QUIRE_ASSIGN_OR_RETURN(const auto ids, request.take_ids("ids"));
  QUIRE_ASSIGN_OR_RETURN(const auto messages, request.take_array("messages"));
  QUIRE_ASSIGN_OR_RETURN(const auto tools, request.take_array("tools"));
  QUIRE_ASSIGN_OR_RETURN(const auto kwargs, request.take_object("kwargs"));
  QUIRE_RETURN_IF_ERROR(request.finish());
  if (int{prompt.has_value()} + int{ids.has_value()} + int{messages.has_value()} != 1) {
    return invalid_argument("a request has exactly one of \"prompt\", \"ids\" and \"messages\"");
  }
  if ((tools || kwargs) && !messages) return invalid_argument("\"tools\" and \"kwargs\" go with \"messages\" only");
  if (messages) return encode_messages(generator, {*messages, tools, kwargs});
  if (prompt) return generator.tokenizer().encode(*prompt, {.add_special = true});
  return *ids;
}

Result<JsonObject> answer(Generator& generator, Options options, JsonRequest& request) {
  QUIRE_RETURN_IF_ERROR(request.take_options(options, kRun));
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, prompt_ids(generator, request));
  QUIRE_RETURN_IF_ERROR(generator.check_prompt(prompt));
  QUIRE_RETURN_IF_ERROR(load_with_progress(generator));  // here, so that no request's timings hold it
  QUIRE_ASSIGN_OR_RETURN(const Request generation,
                         generate_request(options, generator.checkpoint().hparams(), std::move(prompt)));
  QUIRE_ASSIGN_OR_RETURN(const GenerateResult result,
                         generator.generate(generation, [](std::string_view) { return true; }));
  JsonObject object;
  object.ids("ids", result.ids)
      .text("text", result.text)
      .text("finish_reason", result.finish_reason)
      .object("timings", timings_json(result));
  if (seed_was_drawn(options, generation)) object.unsigned_number("seed", generation.sampling.seed);
  return object;
}

// One turn: streams the answer, reports speed, remembers both sides.
Result<GenerateResult> say(Generator& generator, const Options& options, Conversation& conversation,
                           const std::string& text, const InterruptScope& interrupt) {
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, conversation.prompt_for(text));
  QUIRE_RETURN_IF_ERROR(generator.check_prompt(prompt));
  QUIRE_RETURN_IF_ERROR(load_with_progress(generator));
  QUIRE_ASSIGN_OR_RETURN(const Request request,
                         generate_request(options, generator.checkpoint().hparams(), std::move(prompt)));
  bool written = true;
  QUIRE_ASSIGN_OR_RETURN(GenerateResult result, generator.generate(request, [&](std::string_view piece) {
    written = std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0;
    return written && !interrupt.interrupted();
  }));
  if (!written) return io_error("standard output cannot be written: the answer was stopped");
  if (!result.text.ends_with('\n')) std::fputs("\n", stdout);
  std::fflush(stdout);
  conversation.remember(text, result.text);
  std::string report = timings_text(result.timings);
  if (seed_was_drawn(options, request)) report += "; seed " + std::to_string(request.sampling.seed);
  note(report);
  if (result.finish_reason == "length") {
    note(options.max_tokens ? "The answer stopped at --max-tokens."
                            : "The context of " + count_text(generator.context()) + " tokens is full; see --context.");
  }
  return result;
}

Status answer_once(Generator& generator, const Options& options, const std::string& text) {
  Conversation conversation(generator, options.system, options.raw);
  const InterruptScope interrupt;
  QUIRE_ASSIGN_OR_RETURN(const GenerateResult result, say(generator, options, conversation, text, interrupt));
  return result.finish_reason == "cancelled" ? cancelled("") : Status();
}

// Lines that a program pipes in: each is a turn, and the first error ends it.
Status chat_with_lines(Generator& generator, const Options& options) {
  Conversation conversation(generator, options.system, options.raw);
  const InterruptScope interrupt;
  LineReader reader;
  std::string line;
  while (true) {
    switch (reader.next(line, interrupt)) {
      case LineReader::Event::kEnd:
        return {};
      case LineReader::Event::kInterrupted:
        return cancelled("");
      case LineReader::Event::kLine:
        break;
    }
    QUIRE_ASSIGN_OR_RETURN(const GenerateResult result, say(generator, options, conversation, line, interrupt));
    if (result.finish_reason == "cancelled") return cancelled("");
  }
}

Status chat_with_person(Generator& generator, const Options& options) {
  Conversation conversation(generator, options.system, options.raw);
  InterruptScope interrupt;
  LineReader reader;
  note("Ctrl-C stops an answer, Ctrl-D leaves, /clear forgets the conversation.");
  bool leaving = false;
  std::string line;
  while (true) {
    std::fputs(styled(stdout, Style::kPrompt, "> ").c_str(), stdout);
    std::fflush(stdout);
    switch (reader.next(line, interrupt)) {
      case LineReader::Event::kEnd:
        std::fputs("\n", stdout);
        return {};
      case LineReader::Event::kInterrupted:
        interrupt.take();
        std::fputs("\n", stdout);
        if (leaving) return cancelled("");
        leaving = true;
        note("Ctrl-C again, or Ctrl-D, leaves.");
        continue;
      case LineReader::Event::kLine:
        break;
    }
    leaving = false;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line == "/clear") {
      conversation.clear();
      continue;
    }
    const Result<GenerateResult> result = say(generator, options, conversation, line, interrupt);
    if (!result.ok()) {
      std::fprintf(stderr, "%s %s\n", styled(stderr, Style::kError, "quire:").c_str(),
                   result.status().message().c_str());
    }
    interrupt.take();
  }
}

Status converse(Generator& generator, const Invocation& invocation) {
  const Options& options = invocation.options;
  if (options.jsonl) {
    return answer_lines([&](JsonRequest& request) { return answer(generator, options, request); });
  }
  if (generator.chat_template() == nullptr && !options.raw) {
    note(generator.checkpoint().path() + " carries no chat template: the prompt is continued as plain text.");
  }
  if (is_terminal(stderr)) note(generator.compute_summary());
  if (invocation.text) return answer_once(generator, options, *invocation.text);
  if (!is_terminal(stdin)) return chat_with_lines(generator, options);
  QUIRE_RETURN_IF_ERROR(load_with_progress(generator));
  return chat_with_person(generator, options);
}

}  // namespace

Status command_run(const Invocation& invocation) {
  const Options& options = invocation.options;
  if (options.jsonl && invocation.text) {
    return invalid_argument("--jsonl reads its prompts from standard input; leave the prompt on the command line out");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator, open_generator(options));
  const Status ended = converse(*generator, invocation);
  if (const std::string why = generator->recording_end(); !why.empty()) note("--record " + why);
  return ended;
}

}  // namespace quire
