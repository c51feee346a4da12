#include "options/option_rows.h"

namespace quire {
namespace {

constexpr std::string_view kBenchSection = "Measurement";
constexpr std::string_view kEvalSection = "Evaluation";

}  // namespace

std::vector<OptionRow> bench_rows() {
  return {
      {.name = "rows",
       .member = &Options::rows,
       .commands = kBench,
       .section = kBenchSection,
       .value_name = "N,N,...",
       .help = "rows of activations (kernel) or sequences that are decoded at a time (model)",
       .unset_text = "kernel: 1,2,4,8,12,32,512; model: 1,2,4,8,16,32",
       .minimum = 1,
       .maximum = 4096},
      {.name = "prefill",
       .member = &Options::prefill,
       .commands = kBench,
       .section = kBenchSection,
       .value_name = "TOKENS",
       .help = "tokens of the prompt",
       .minimum = 1,
       .maximum = 1 << 20},
      {.name = "decode",
       .member = &Options::decode,
       .commands = kBench,
       .section = kBenchSection,
       .value_name = "TOKENS",
       .help = "tokens that each sequence decodes",
       .minimum = 1,
       .maximum = 1 << 20},
      {.name = "depth",
       .member = &Options::depth,
       .commands = kBench,
       .section = kBenchSection,
       .value_name = "TOKENS",
       .help = "tokens of each sequence before those that are decoded",
       .minimum = 0,
       .maximum = 1 << 20},
      {.name = "repeats",
       .member = &Options::repeats,
       .commands = kBench,
       .section = kBenchSection,
       .value_name = "N",
       .help = "times that each work is done",
       .minimum = 1,
       .maximum = 1000},
  };
}

std::vector<OptionRow> eval_rows() {
  return {
      {.name = "reference",
       .member = &Options::reference,
       .commands = kEval,
       .section = kEvalSection,
       .value_name = "MODEL",
       .help = "what to measure the distance from: a model of the same vocabulary, or plain: --model itself. It always "
               "runs with f32 activations and f32 KV",
       .unset_text = "none: perplexity only"},
      {.name = "also",
       .member = &Options::also,
       .commands = kEval,
       .section = kEvalSection,
       .value_name = "MODEL,...",
       .help = "further models to judge in the same pass; may be given again"},
      {.name = "text",
       .member = &Options::text,
       .commands = kEval,
       .section = kEvalSection,
       .value_name = "FILE",
       .help = "UTF-8 text to judge on",
       .unset_text = "the text that comes with quire"},
      {.name = "window",
       .member = &Options::window,
       .commands = kEval,
       .section = kEvalSection,
       .value_name = "TOKENS",
       .help = "tokens that the text is cut into, an even number; those after the middle of each are scored",
       .minimum = 4,
       .maximum = 1 << 20},
      {.name = "score",
       .member = &Options::score,
       .commands = kEval,
       .section = kEvalSection,
       .value_name = "PART",
       .help = "half: the tokens after the middle of each window, as llama.cpp's perplexity tool does; all: every "
               "token but "
               "the first",
       .choices = {"half", "all"}},
      {.name = "store",
       .member = &Options::store,
       .commands = kEval,
       .section = kEvalSection,
       .help = "with --reference: keep the result in the model, which quire wrote, as its proof (serve --max-kl)"},
      {.name = "tokens",
       .member = &Options::tokens,
       .commands = kEval,
       .section = kEvalSection,
       .value_name = "N",
       .help = "read at most so many tokens of the text, in whole windows; 0: all",
       .minimum = 0,
       .maximum = 1 << 30},
  };
}

}  // namespace quire
