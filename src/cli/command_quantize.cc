#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "capacity/model_setup.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "eval/prove.h"
#include "hub/hashed_file.h"
#include "model/registry.h"
#include "quantize/job.h"
#include "text/shipped_texts.h"
#include "unicode/utf8.h"
#include "vocab/tokenizer_export.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

using Clock = std::chrono::steady_clock;

DType type_of(const std::string& name) {
  for (const DTypeInfo& info : all_dtypes()) {
    std::string lower(info.name);
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (lower == name) return info.dtype;
  }
  return DType::kF32;  // the option table has no other names
}

QuantizeRequest request_of(const Options& options) {
  using Format = CheckpointTarget::Format;
  QuantizeRequest request;
  request.scheme = options.scheme == "rtn"   ? QuantizeScheme::kRtn
                   : options.scheme == "awq" ? QuantizeScheme::kAwq
                                             : QuantizeScheme::kGptq;
  const std::string& format = options.format;
  if (format == "gguf") request.format = Format::kGguf;
  if (format == "gptq") request.format = Format::kGptq;
  if (format == "awq") request.format = Format::kAwq;
  if (format == "compressed-tensors") request.format = Format::kCompressedTensors;
  if (format == "safetensors") request.format = Format::kSafetensors;
  if (options.type != "auto") request.type = type_of(options.type);
  request.bits = static_cast<int>(options.bits);
  if (options.group != 0) request.group = options.group < 0 ? 0 : options.group;
  request.symmetric = !options.asym;
  request.gptq.act_order = options.act_order;
  request.gptq.static_groups = options.static_groups;
  request.gptq.damp = options.damp;
  if (options.importance != "auto") request.importance = options.importance == "on";
  return request;
}

struct Calibration {
  std::string name;
  std::string sha256;
  std::vector<std::vector<int32_t>> sequences;
};

// Sequences from all over the text: one chapter alone says little about the others.
Result<Calibration> calibration_of(const Options& options, const Checkpoint& checkpoint) {
  const int64_t context = checkpoint.hparams().context_length;
  if (options.calibration_length > context) {
    return invalid_argument("--calibration-length is " + count_text(options.calibration_length) + ", but " +
                            checkpoint.path() + " was trained for " + counted(context, "token") + " at most; lower it");
  }
  Calibration calibration;
  std::string text;
  if (options.calibration.empty()) {
    calibration.name = "calibration.txt of quire";
    text = calibration_text();
  } else {
    calibration.name = options.calibration;
    QUIRE_ASSIGN_OR_RETURN(text, read_file(options.calibration, kMaxTextBytes));
  }
  calibration.sha256 = bytes_sha256(text);
  QUIRE_RETURN_IF_ERROR(check_utf8(calibration.name, text));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, load_tokenizer(checkpoint));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->encode(text, {.add_special = false}));
  const int64_t length = options.calibration_length;
  const int64_t wanted = options.calibration_sequences * length;
  if (static_cast<int64_t>(ids.size()) < wanted) {
    return invalid_argument(calibration.name + " has " + counted(static_cast<int64_t>(ids.size()), "token") + ", but " +
                            count_text(options.calibration_sequences) + " sequences of " + count_text(length) +
                            " need " + count_text(wanted) +
                            "; give a longer --calibration text, or lower --calibration-sequences");
  }
  const int64_t stride = static_cast<int64_t>(ids.size()) / options.calibration_sequences;
  for (int64_t i = 0; i < options.calibration_sequences; ++i) {
    const auto first = ids.begin() + i * stride;
    calibration.sequences.emplace_back(first, first + length);
    // As in use: models that are used to it read text without it badly.
    if (tokenizer->adds_bos()) calibration.sequences.back().front() = tokenizer->bos_id();
  }
  return calibration;
}

// The tokenizer in the form of the output, where the source has the other one.
Status convert_tokenizer(const Checkpoint& checkpoint, CheckpointTarget& target) {
  const bool from_gguf = checkpoint.document("config.json") == nullptr;
  const bool to_gguf = target.format == CheckpointTarget::Format::kGguf;
  if (from_gguf && !to_gguf) {
    QUIRE_ASSIGN_OR_RETURN(target.documents, hf_tokenizer_documents(checkpoint));
  } else if (!from_gguf && to_gguf) {
    QUIRE_ASSIGN_OR_RETURN(target.tokenizer, gguf_tokenizer_metadata(checkpoint));
  }
  return {};
}

std::string time_text(double seconds) {
  char buffer[48];
  if (seconds < 60) {
    std::snprintf(buffer, sizeof buffer, "%.1f s", seconds);
  } else {
    std::snprintf(buffer, sizeof buffer, "%d min %02d s", static_cast<int>(seconds) / 60,
                  static_cast<int>(seconds) % 60);
  }
  return buffer;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Shows phase and time left.
QuantizeProgress progress_on(ProgressLine& line, const InterruptScope& interrupt) {
  return {.show =
              [&line, start = Clock::now()](std::string_view phase, double fraction) {
                std::string text(phase);
                const double seconds = seconds_since(start);
                if (fraction > 0 && seconds > 2) text += ", " + time_text(seconds / fraction - seconds) + " left";
                line.show(text, fraction);
              },
          .cancelled = [&interrupt] { return interrupt.interrupted(); }};
}

// Compares the result with the original, and keeps that in it.
Status prove(const Options& options, const std::string& original, const std::string& out) {
  const InterruptScope interrupt;
  ProgressLine line;
  const Result<Proof> proof = prove_quantization({.options = model_options(options, out),
                                                  .original = original,
                                                  .tokens = options.proof_tokens,
                                                  .text_sha256 = bytes_sha256(evaluation_text()),
                                                  .progress = [&](double fraction) {
                                                    line.show("comparing with the original", fraction);
                                                    return !interrupt.interrupted();
                                                  }});
  line.clear();
  if (proof.status().code() == StatusCode::kResourceExhausted) {
    note("no proof: " + proof.status().message() + "; `quire eval --model " + out + " --reference " + original +
         " --compute f32 --store` makes it later");
    return {};
  }
  if (!proof.ok()) return proof.status();
  std::printf("perplexity %.3f, of the original %.3f; mean KL divergence %.4f nats, at most %.4f (%s)\n",
              proof->perplexity, proof->perplexity_of_original, proof->kl, proof->kl_upper,
              counted(proof->tokens, "token").c_str());
  return {};
}

}  // namespace

Status command_quantize(const Invocation& invocation) {
  Options options = invocation.options;
  if (invocation.texts.size() != 2)
    return invalid_argument("name the model to quantize and the file or directory to write: `quire quantize IN OUT`");
  options.model = invocation.texts[0];
  const std::string& out = invocation.texts[1];
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(path));
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig config, configure_model(checkpoint->hparams()));
  QUIRE_ASSIGN_OR_RETURN(QuantizeTarget target, quantize_target(*checkpoint, request_of(options), out));
  QUIRE_RETURN_IF_ERROR(convert_tokenizer(*checkpoint, target.file));
  target.file.k_factors = static_cast<int64_t>(config.layers.size()) * config.heads.kv_heads * config.heads.head_dim;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, make_device(model_options(options, path)));
  Calibration calibration;
  if (!target.plain && (target.options.scheme != QuantizeScheme::kRtn || target.options.importance)) {
    QUIRE_ASSIGN_OR_RETURN(calibration, calibration_of(options, *checkpoint));
  }
  const QuantizeJob job = {
      .checkpoint = *checkpoint,
      .config = config,
      .device = *device,
      .target = target,
      .sequences = calibration.sequences,
      .settings = target.description + "\n" + checkpoint->file_versions() + calibration.sha256 + " " +
                  std::to_string(options.calibration_sequences) + " x " + std::to_string(options.calibration_length) +
                  " damp " + std::to_string(options.damp) + "\n" + device->sizes().kernel_name(DType::kQ4_0) + "\n",
      .out = out};
  const auto tokenizer = load_tokenizer(*checkpoint);
  note_remarks(*checkpoint, tokenizer.ok() ? tokenizer->get() : nullptr);
  note(target.description + ", on " + device->sizes().description());
  const Clock::time_point start = Clock::now();
  QuantizeOutcome outcome;
  {
    const InterruptScope interrupt;
    ProgressLine line;
    QUIRE_ASSIGN_OR_RETURN(outcome, run_quantize_job(job, progress_on(line, interrupt)));
  }
  QUIRE_RETURN_IF_ERROR(outcome.writer->finish({}));
  if (!target.plain) QUIRE_RETURN_IF_ERROR(remove_work(job));
  if (outcome.resumed_layers > 0)
    note("went on after " + counted(static_cast<int64_t>(outcome.resumed_layers), "layer") + " of an earlier run");
  std::printf("%s: %s, in %s\n", out.c_str(), target.description.c_str(), time_text(seconds_since(start)).c_str());
  std::fflush(stdout);
  return options.proof_tokens > 0 ? prove(options, path, out) : Status();
}

}  // namespace quire
