#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/answer.h"
#include "cli/chat.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/interrupt.h"
#include "cli/jsonl.h"
#include "cli/model_source.h"
#include "cli/run_prompt.h"
#include "cli/terminal.h"
#include "engine/generator.h"
#include "server/timings.h"

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
      .json("timings", timings_json(result.timings))
      .number("scalar_linears", result.scalar_linears);
  if (seed_was_drawn(options, generation)) object.unsigned_number("seed", generation.sampling.seed);
  return object;
}

Status answer_once(Generator& generator, const Options& options, const std::string& text) {
  const Conversation conversation(generator, options.system, options.raw);
  const InterruptScope interrupt;
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> prompt, conversation.prompt_for(text));
  QUIRE_ASSIGN_OR_RETURN(const GenerateResult result, print_answer(generator, options, std::move(prompt), interrupt));
  return result.finish_reason == "cancelled" ? cancelled("") : Status();
}

// A name that --model takes, or the path of a model: of a GGUF file, also where there is none.
bool names_model(const std::string& text, const Options& options) {
  if (text.ends_with(".gguf") && text.find(' ') == std::string::npos) return true;
  const std::vector<std::string> names = model_names(options);
  if (std::ranges::find(names, text) != names.end()) return true;
  std::error_code error;
  return std::filesystem::is_regular_file(text + "/config.json", error);
}

// `quire run NAME` may mean the model or the words. A person is asked; a script is told both spellings.
Status settle_name(Invocation& invocation) {
  if (!invocation.text || invocation.text_is_literal || invocation.model_is_given) return {};
  const std::string name = *invocation.text;
  if (!names_model(name, invocation.options)) return {};
  if (!is_terminal(stdin) || !is_terminal(stderr)) {
    return invalid_argument("\"" + name + "\" is the name of a model: `quire run --model " + name +
                            " PROMPT` answers with it, `quire run -- " + name + "` takes it for the prompt");
  }
  if (ask(name + " is the name of a model. Chat with it?", true)) {
    invocation.options.model = name;
    invocation.text.reset();
  }
  return {};
}

Status converse(Generator& generator, const Options& options, const std::optional<std::string>& prompt) {
  if (options.jsonl) {
    return answer_lines([&](JsonRequest& request) { return answer(generator, options, request); });
  }
  if (generator.chat_template() == nullptr && !options.raw) {
    note(generator.checkpoint().path() + " carries no chat template: the prompt is continued as plain text.");
  }
  if (is_terminal(stderr)) note(generator.compute_summary());
  note(plan_text(generator.memory_plan()));
  return prompt ? answer_once(generator, options, *prompt) : chat_with_person(generator, options);
}

}  // namespace

Status command_run(const Invocation& given) {
  Invocation invocation = given;
  const Options& options = invocation.options;
  std::optional<std::string> prompt;
  if (options.jsonl && invocation.text) {
    return invalid_argument("--jsonl reads its prompts from standard input; leave the prompt on the command line out");
  }
  if (!options.jsonl) {
    QUIRE_RETURN_IF_ERROR(settle_name(invocation));
    QUIRE_ASSIGN_OR_RETURN(prompt, run_prompt(invocation));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator, open_generator(options));
  const Status ended = converse(*generator, options, prompt);
  if (const std::string why = generator->recording_end(); !why.empty()) note("--record " + why);
  return ended;
}

}  // namespace quire
