#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "capacity/memory_plan.h"
#include "cli/commands.h"
#include "cli/json_object.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "cli/what_if.h"
#include "formats/checkpoint.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

struct TensorLine {
  std::string type;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
};

// By type, the one that takes most space first.
std::vector<TensorLine> tensors_by_type(const Checkpoint& checkpoint) {
  std::map<std::string, TensorLine> lines;
  for (const TensorRef& tensor : checkpoint.tensors()) {
    TensorLine& line = lines[tensor.type_name()];
    line.type = tensor.type_name();
    line.tensors += 1;
    line.parameters += tensor.rows() * tensor.columns();
    line.bytes += tensor.bytes;
  }
  std::vector<TensorLine> sorted;
  for (auto& [type, line] : lines) sorted.push_back(std::move(line));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::string_view scaling_name(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::kNone:
      return "none";
    case RopeScaling::kLinear:
      return "linear";
    case RopeScaling::kLlama3:
      return "llama3";
    case RopeScaling::kYarn:
      return "yarn";
    case RopeScaling::kLongrope:
      return "longrope";
    case RopeScaling::kDynamic:
      return "dynamic";
  }
  return "none";
}

int64_t window_layers(const Hparams& hparams) {
  return std::count(hparams.layer_slides.begin(), hparams.layer_slides.end(), true);
}

JsonObject rope_json(const RopeParams& rope) {
  JsonObject object;
  object.real("theta", rope.theta).text("scaling", scaling_name(rope.scaling)).real("factor", rope.factor);
  if (rope.original_context > 0) object.number("original_context", rope.original_context);
  if (rope.scaling == RopeScaling::kLlama3) {
    object.real("low_freq_factor", rope.low_freq_factor).real("high_freq_factor", rope.high_freq_factor);
  }
  if (rope.scaling == RopeScaling::kYarn) {
    object.real("beta_fast", rope.beta_fast).real("beta_slow", rope.beta_slow).boolean("truncate", rope.truncate);
    if (rope.attention_factor) object.real("attention_factor", *rope.attention_factor);
    if (rope.mscale) object.real("mscale", *rope.mscale);
    if (rope.mscale_all_dim) object.real("mscale_all_dim", *rope.mscale_all_dim);
  }
  return object;
}

JsonObject plan_json(const ModelHeaders& model, const MemoryPlan& plan, int64_t sequences) {
  std::vector<JsonObject> weights;
  for (const WeightLine& line : weight_lines(model)) {
    weights.emplace_back()
        .text("type", line.dtype)
        .text("kernel", line.kernel)
        .number("tensors", line.tensors)
        .number("file_bytes", line.file_bytes)
        .number("packed_bytes", line.packed_bytes);
  }
  std::vector<JsonObject> groups;
  for (const KvLine& group : kv_lines(model, plan)) {
    groups.emplace_back()
        .text("name", group.name)
        .number("layers", group.layers)
        .number("bytes_per_token", group.bytes_per_token)
        .number("tokens_per_sequence", group.tokens_per_sequence)
        .number("bytes", group.bytes);
  }
  JsonObject object;
  object.number("context", plan.context)
      .number("sequences", sequences)
      .objects("weights", std::move(weights))
      .number("packed_weight_bytes", plan.weight_bytes)
      .objects("kv_groups", std::move(groups))
      .number("kv_bytes", plan.kv_bytes)
      .number("workspace_bytes", plan.workspace_bytes)
      .number("tokenizer_bytes", plan.tokenizer_bytes)
      .number("total_bytes", plan.total_bytes())
      .number("available_bytes", plan.budget_bytes);
  return object;
}

// The shortest decimal number that is this float: 1e-05, not 9.99999974737875e-06.
double shown(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

// What a generation takes where a request leaves it open; a key for each that the checkpoint states.
JsonObject sampling_json(const Hparams& h) {
  JsonObject object;
  if (h.default_temperature) object.real("temperature", shown(*h.default_temperature));
  if (h.default_top_k) object.number("top_k", *h.default_top_k);
  if (h.default_top_p) object.real("top_p", shown(*h.default_top_p));
  if (h.default_min_p) object.real("min_p", shown(*h.default_min_p));
  if (h.default_repetition_penalty) {
    object.real("repetition_penalty", shown(*h.default_repetition_penalty));
  }
  return object;
}

// Of checkpoint and tokenizer together. One whose tokenizer cannot be read is inspected all the same.
std::vector<std::string> remarks_of(const Checkpoint& checkpoint) {
  std::vector<std::string> remarks(checkpoint.remarks().begin(), checkpoint.remarks().end());
  const auto tokenizer = load_tokenizer(checkpoint);
  if (tokenizer.ok()) {
    remarks.insert(remarks.end(), (*tokenizer)->remarks().begin(), (*tokenizer)->remarks().end());
  } else {
    remarks.push_back("the tokenizer cannot be read: " + tokenizer.status().message());
  }
  return remarks;
}

void print_json(const ModelHeaders& model, JsonObject plan, const std::optional<std::string>& chat_template) {
  const Checkpoint& checkpoint = *model.checkpoint;
  const Hparams& hparams = checkpoint.hparams();
  JsonObject object;
  object.text("path", checkpoint.path())
      .texts("remarks", remarks_of(checkpoint))
      .text("format", checkpoint.format())
      .number("file_bytes", checkpoint.file_bytes())
      .text("architecture", hparams.architecture)
      .text("name", hparams.name)
      .number("layers", hparams.layers)
      .number("hidden", hparams.hidden)
      .number("heads", hparams.heads)
      .number("kv_heads", hparams.kv_heads)
      .number("head_dim", hparams.head_dim)
      .number("ffn_hidden", hparams.ffn_hidden)
      .number("vocab_size", hparams.vocab_size)
      .boolean("tied_embeddings", hparams.tied_embeddings)
      .real("rms_norm_eps", shown(hparams.rms_norm_eps))
      .text("activation", hparams.activation)
      .real("attention_softcap", shown(hparams.attention_softcap))
      .real("final_softcap", shown(hparams.final_softcap))
      .number("context_length", hparams.context_length)
      .number("sliding_window", hparams.sliding_window)
      .number("window_layers", window_layers(hparams))
      .object("rope", rope_json(hparams.rope));
  if (hparams.attention_scale) object.real("attention_scale", shown(*hparams.attention_scale));
  if (hparams.rope_local) object.object("rope_local", rope_json(*hparams.rope_local));
  object.ids("eos_token_ids", hparams.eos_token_ids).object("sampling", sampling_json(hparams));
  std::vector<JsonObject> tensors;
  for (const TensorLine& line : tensors_by_type(checkpoint)) {
    tensors.emplace_back()
        .text("type", line.type)
        .number("tensors", line.tensors)
        .number("parameters", line.parameters)
        .number("bytes", line.bytes);
  }
  object.objects("tensors", std::move(tensors));
  chat_template ? object.text("chat_template", *chat_template) : object.null("chat_template");
  object.object("memory_plan", std::move(plan));
  std::printf("%s\n", object.pretty().c_str());
}

void print_section(const char* title, const std::vector<std::vector<std::string>>& rows) {
  std::printf("\n%s\n%s", styled(stdout, Style::kHeading, title).c_str(), table_text(rows, "  ").c_str());
}

std::string rope_text(const RopeParams& rope) {
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, "base %g", rope.theta);
  std::string text = buffer;
  if (rope.scaling == RopeScaling::kNone) return text;
  std::snprintf(buffer, sizeof buffer, ", %s x %g", std::string(scaling_name(rope.scaling)).c_str(), rope.factor);
  return text + buffer;
}

std::string sampling_text(const Hparams& h) {
  const auto with = [](std::string text, const char* name, double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%s%s %g", text.empty() ? "" : ", ", name, value);
    return text + buffer;
  };
  std::string text;
  if (h.default_temperature) text = with(text, "temperature", shown(*h.default_temperature));
  if (h.default_top_k) text = with(text, "top_k", *h.default_top_k);
  if (h.default_top_p) text = with(text, "top_p", shown(*h.default_top_p));
  if (h.default_min_p) text = with(text, "min_p", shown(*h.default_min_p));
  if (h.default_repetition_penalty) {
    text = with(text, "repetition_penalty", shown(*h.default_repetition_penalty));
  }
  return text.empty() ? "not stated" : text;
}

void print_architecture(const Checkpoint& checkpoint, const std::optional<std::string>& chat_template) {
  const Hparams& h = checkpoint.hparams();
  std::vector<std::vector<std::string>> rows = {
      {"file", checkpoint.path()},
      {"format", std::string(checkpoint.format()) + ", " + bytes_text(checkpoint.file_bytes())},
      {"architecture", h.architecture},
      {"layers",
       count_text(h.layers) + ", hidden " + count_text(h.hidden) + ", feed-forward " + count_text(h.ffn_hidden)},
      {"attention",
       count_text(h.heads) + " heads of " + count_text(h.head_dim) + ", " + count_text(h.kv_heads) + " for K and V"},
      {"rope", rope_text(h.rope)},
      {"vocabulary",
       count_text(h.vocab_size) + " tokens, " + (h.tied_embeddings ? "tied" : "separate") + " output matrix"},
      {"context", count_text(h.context_length) + " tokens trained"},
      {"sampling", sampling_text(h)},
      {"chat template", chat_template ? count_text(static_cast<int64_t>(chat_template->size())) + " bytes" : "none"},
  };
  if (h.sliding_window > 0) {
    std::string text = count_text(h.sliding_window) + " tokens in " + count_text(window_layers(h)) + " layers";
    if (h.rope_local) text += ", rope " + rope_text(*h.rope_local);
    rows.insert(rows.begin() + 6, {"window", std::move(text)});
  }
  if (!h.name.empty()) rows.insert(rows.begin(), {"model", h.name});
  std::fputs(table_text(rows, "", "ll").c_str(), stdout);
}

void print_tensors(const Checkpoint& checkpoint) {
  std::vector<std::vector<std::string>> rows = {{"type", "tensors", "parameters", "size"}};
  TensorLine sum;
  for (const TensorLine& line : tensors_by_type(checkpoint)) {
    rows.push_back({line.type, count_text(line.tensors), count_text(line.parameters), bytes_text(line.bytes)});
    sum.tensors += line.tensors;
    sum.parameters += line.parameters;
    sum.bytes += line.bytes;
  }
  rows.push_back({"all", count_text(sum.tensors), count_text(sum.parameters), bytes_text(sum.bytes)});
  print_section("Tensors", rows);
}

void print_plan(const ModelHeaders& model, const MemoryPlan& plan, int64_t sequences) {
  std::vector<std::vector<std::string>> rows = {{"weights", "tensors", "in the file", "in memory", "kernel"}};
  for (const WeightLine& line : weight_lines(model)) {
    rows.push_back({line.dtype, count_text(line.tensors), bytes_text(line.file_bytes),
                    line.packed_bytes > 0 ? bytes_text(line.packed_bytes) : "mapped", line.kernel});
  }
  const std::string title = "Memory plan: " + count_text(plan.context) + " tokens x " + count_text(sequences) +
                            (sequences == 1 ? " sequence" : " sequences");
  print_section(title.c_str(), rows);

  rows = {{"KV cache", "layers", "per token", "tokens a sequence", "in memory"}};
  for (const KvLine& group : kv_lines(model, plan)) {
    rows.push_back({group.name, count_text(group.layers), bytes_text(group.bytes_per_token),
                    count_text(group.tokens_per_sequence), bytes_text(group.bytes)});
  }
  std::printf("\n%s", table_text(rows, "  ").c_str());

  rows = {{"weights", bytes_text(plan.weight_bytes)},      {"KV cache", bytes_text(plan.kv_bytes)},
          {"workspace", bytes_text(plan.workspace_bytes)}, {"tokenizer", bytes_text(plan.tokenizer_bytes)},
          {"all", bytes_text(plan.total_bytes())},         {"available now", bytes_text(plan.budget_bytes)}};
  std::printf("\n%s", table_text(rows, "  ").c_str());
}

}  // namespace

Status command_inspect(const Invocation& invocation) {
  const Options& options = invocation.options;
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  QUIRE_ASSIGN_OR_RETURN(const ModelHeaders model, open_headers(model_options(options, path)));
  if (options.what_if) {
    QUIRE_ASSIGN_OR_RETURN(const WhatIf answer, what_if(model));
    options.json ? print_what_if_json(answer) : print_what_if(answer);
    return {};
  }
  const Checkpoint* checkpoint = model.checkpoint.get();
  const MemoryPlan plan = plan_sequences(model, options.sequences);
  QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> chat_template, chat_template_source(*checkpoint));
  if (options.json) {
    print_json(model, plan_json(model, plan, options.sequences), chat_template);
    return {};
  }
  print_architecture(*checkpoint, chat_template);
  print_tensors(*checkpoint);
  print_plan(model, plan, options.sequences);
  if (const std::vector<std::string> remarks = remarks_of(*checkpoint); !remarks.empty()) {
    std::printf("\n%s\n", styled(stdout, Style::kHeading, "How the files are read").c_str());
    for (const std::string& remark : remarks) std::printf("  %s\n", remark.c_str());
  }
  if (!plan.fits()) {
    std::printf("\nIt does not fit: lower --context%s.\n", options.sequences > 1 ? " or --sequences" : "");
  } else if (is_terminal(stdout)) {
    std::printf("\nNext: quire run --model %s\n", options.model.c_str());
  }
  return {};
}

}  // namespace quire
