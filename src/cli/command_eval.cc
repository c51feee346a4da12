#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "base/units.h"
#include "capacity/model_setup.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/json_object.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "eval/evaluate.h"
#include "eval/proof.h"
#include "eval/subject.h"
#include "formats/store_notes.h"
#include "hub/hashed_file.h"
#include "text/shipped_texts.h"

namespace quire {
namespace {

constexpr int64_t kMaxTextBytes = int64_t{64} << 20;

using Clock = std::chrono::steady_clock;
using Subjects = std::vector<std::unique_ptr<EvalSubject>>;

// What is judged, before and after its weights are loaded.
struct Run {
  std::string text_name;
  std::string text_bytes;
  std::string text_sha256;
  std::unique_ptr<EvalSubject> reference;  // null: none
  Subjects candidates;
  EvalText text;
};

std::string fixed(double value, int digits) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

// Three significant digits: divergences span six orders of magnitude.
std::string significant(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%#.3g", value);
  return buffer;
}

std::string with_error(const std::string& value, const std::optional<double>& error, int digits) {
  return error.has_value() ? value + " ±" + fixed(*error, digits) : value;
}

Result<std::unique_ptr<EvalSubject>> open_subject(Options options, const std::string& name, bool exact) {
  options.model = name;
  QUIRE_ASSIGN_OR_RETURN(std::string path, find_model(options));
  const ModelOptions asked = model_options(options, std::move(path));
  return EvalSubject::open(exact ? exact_options(asked) : asked);
}

// "a,b" is two models, unless that is the name of a file.
std::vector<std::string> names_of(const std::vector<std::string>& values) {
  std::vector<std::string> names;
  for (const std::string& value : values) {
    std::error_code error;
    size_t begin = 0;
    while (begin <= value.size() && !value.empty()) {
      const size_t end =
          std::filesystem::exists(value, error) ? value.size() : std::min(value.find(',', begin), value.size());
      if (end > begin) names.push_back(value.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return names;
}

Status read_text(const Options& options, Run& run) {
  run.text_name = options.text.empty() ? "evaluation.txt of quire" : options.text;
  if (options.text.empty()) {
    run.text_bytes = evaluation_text();
  } else {
    QUIRE_ASSIGN_OR_RETURN(run.text_bytes, read_file(options.text, kMaxTextBytes));
  }
  run.text_sha256 = bytes_sha256(run.text_bytes);
  return {};
}

Status check_memory(const Run& run, int64_t window) {
  int64_t needed = 0;
  std::vector<const EvalSubject*> all;
  if (run.reference != nullptr) all.push_back(run.reference.get());
  for (const auto& candidate : run.candidates) all.push_back(candidate.get());
  for (const EvalSubject* subject : all) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t bytes, subject->planned_bytes(window));
    needed += bytes;
  }
  const int64_t available = available_memory_bytes();
  if (needed <= available) return {};
  return resource_exhausted(counted(static_cast<int64_t>(all.size()), "model") + " at a time need " +
                            bytes_text(needed) + ", " + bytes_text(available) +
                            " are available: judge fewer in one pass, or on a machine with more memory");
}

// Everything that headers and the text tell: errors come before weights are packed.
Result<Run> open_run(const Options& options) {
  Run run;
  QUIRE_RETURN_IF_ERROR(read_text(options, run));
  std::vector<std::string> names = names_of(options.also);
  names.insert(names.begin(), options.model);
  for (const std::string& name : names) {
    QUIRE_ASSIGN_OR_RETURN(auto candidate, open_subject(options, name, false));
    run.candidates.push_back(std::move(candidate));
  }
  const EvalSubject& first = *run.candidates.front();
  QUIRE_ASSIGN_OR_RETURN(
      run.text, EvalText::create(run.text_name, run.text_bytes, first.tokenizer(), options.window, options.tokens));
  if (options.score == "all") run.text.score_all();
  if (!options.reference.empty()) {
    const std::string& name = options.reference == "plain" ? options.model : options.reference;
    QUIRE_ASSIGN_OR_RETURN(run.reference, open_subject(options, name, true));
  }
  const EvalSubject& base = run.reference != nullptr ? *run.reference : first;
  for (const auto& candidate : run.candidates)
    QUIRE_RETURN_IF_ERROR(check_same_vocabulary(base, *candidate, run.text_bytes));
  QUIRE_RETURN_IF_ERROR(check_memory(run, options.window));
  return run;
}

// The file's name, or its path where two models have the same name.
std::string short_name(const Run& run, const EvalSubject& subject) {
  const std::string& path = subject.options().model_path;
  const auto same = std::count_if(run.candidates.begin(), run.candidates.end(), [&](const auto& other) {
    return model_name_of(other->options().model_path) == model_name_of(path);
  });
  return same > 1 ? path : model_name_of(path);
}

Status load(EvalSubject& subject, int64_t window) {
  ProgressLine line;
  const std::string what = "loading " + model_name_of(subject.options().model_path);
  QUIRE_RETURN_IF_ERROR(subject.load(window, [&](double fraction) { line.show(what, fraction); }));
  line.clear();
  note_remarks(subject.checkpoint(), &subject.tokenizer());
  for (const std::string& text : subject.load_notes()) note(text);
  return {};
}

EvalModel eval_model(EvalSubject& subject) {
  return {.name = subject.options().model_path, .model = &subject.model(), .max_rows = kEvalStepRows};
}

std::string time_left(Clock::time_point start, double fraction) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const auto left = static_cast<int64_t>(seconds / fraction - seconds);
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "judging, %lld:%02lld left,", static_cast<long long>(left / 60),
                static_cast<long long>(left % 60));
  return buffer;
}

Result<Evaluation> judge(Run& run) {
  std::optional<EvalModel> reference;
  if (run.reference != nullptr) reference = eval_model(*run.reference);
  std::vector<EvalModel> candidates;
  for (const auto& candidate : run.candidates) candidates.push_back(eval_model(*candidate));
  const InterruptScope interrupt;
  ProgressLine line;
  const Clock::time_point start = Clock::now();
  line.show("judging", 0);
  return evaluate(reference.has_value() ? &*reference : nullptr, candidates, run.text,
                  {.progress = [&](double fraction) {
                    line.show(time_left(start, fraction), fraction);
                    return !interrupt.interrupted();
                  }});
}

JsonObject& add_estimate(JsonObject& object, const std::string& key, const Estimate& estimate) {
  object.real(key, estimate.value);
  return estimate.error.has_value() ? object.real(key + "_error", *estimate.error) : object.null(key + "_error");
}

JsonObject model_json(const EvalSubject& subject, const std::vector<WindowScore>& windows) {
  JsonObject object;
  object.text("model", subject.options().model_path)
      .text("compute", subject.compute_summary())
      .texts("kernels", subject.kernels());
  return std::move(add_estimate(object, "perplexity", perplexity(windows)));
}

void add_comparison(JsonObject& object, const Evaluation& result, size_t candidate) {
  const std::vector<WindowScore>& windows = result.candidates[candidate];
  add_estimate(object, "perplexity_ratio", perplexity_ratio(windows));
  add_estimate(object, "kl", mean_kl(windows));
  const std::optional<double> upper = mean_kl_upper(windows);
  upper.has_value() ? object.real("kl_upper", *upper) : object.null("kl_upper");
  add_estimate(object, "same_top", top_agreement(windows));
  object.real("logprob_rms", logprob_rms(windows))
      .real("logprob_max", logprob_max(windows))
      .real("logit_max", logit_max(windows));
  if (candidate == 0) return;
  const std::optional<Interval> interval = kl_ratio_interval(windows, result.candidates.front());
  if (!interval.has_value()) {
    object.null("kl_ratio_to_first");
    return;
  }
  JsonObject ratio;
  ratio.real("value", mean_kl(windows).value / mean_kl(result.candidates.front()).value)
      .real("low", interval->low)
      .real("high", interval->high);
  object.object("kl_ratio_to_first", std::move(ratio));
}

void print_json(const Run& run, const Evaluation& result) {
  JsonObject text;
  text.text("name", run.text_name)
      .number("bytes", static_cast<int64_t>(run.text_bytes.size()))
      .text("sha256", run.text_sha256)
      .number("tokens", run.text.text_tokens());
  JsonObject object;
  object.object("text", std::move(text))
      .number("window", run.text.window())
      .number("windows", result.windows)
      .number("tokens_read", result.windows * run.text.window())
      .number("tokens_scored", result.windows * run.text.scored_per_window());
  run.reference != nullptr ? object.object("reference", model_json(*run.reference, result.reference))
                           : object.null("reference");
  std::vector<JsonObject> models;
  for (size_t i = 0; i < run.candidates.size(); ++i) {
    models.push_back(model_json(*run.candidates[i], result.candidates[i]));
    if (run.reference != nullptr) add_comparison(models.back(), result, i);
  }
  object.objects("models", std::move(models))
      .real("forward_seconds", result.forward_seconds)
      .real("comparison_seconds", result.comparison_seconds);
  std::printf("%s\n", object.pretty().c_str());
}

void print_header(const Run& run, const Evaluation& result) {
  std::vector<std::vector<std::string>> rows = {
      {"text", run.text_name + ", " + bytes_text(static_cast<int64_t>(run.text_bytes.size())) + ", sha256 " +
                   run.text_sha256.substr(0, 16)},
      {"tokens",
       count_text(run.text.text_tokens()) + ", read in " + counted(result.windows, "window") + " of " +
           count_text(run.text.window()) + "; " + count_text(result.windows * run.text.scored_per_window()) +
           (run.text.first_row() > 0 ? " scored, those in the second halves" : " scored, all but the first")}};
  const auto add = [&](const char* role, const EvalSubject& subject) {
    std::string kernels;
    for (const std::string& kernel : subject.kernels()) kernels += (kernels.empty() ? "" : ", ") + kernel;
    rows.push_back({role, subject.options().model_path + ": " + subject.compute_summary()});
    rows.push_back({"", kernels});
  };
  if (run.reference != nullptr) add("reference", *run.reference);
  for (const auto& candidate : run.candidates) add("model", *candidate);
  std::printf("%s\n", table_text(rows, "", "ll").c_str());
}

void print_likelihoods(const Run& run, const Evaluation& result) {
  std::vector<std::vector<std::string>> rows = {{"model", "perplexity"}};
  for (size_t i = 0; i < run.candidates.size(); ++i) {
    const Estimate ppl = perplexity(result.candidates[i]);
    rows.push_back({short_name(run, *run.candidates[i]), with_error(fixed(ppl.value, 4), ppl.error, 4)});
  }
  std::fputs(table_text(rows, "").c_str(), stdout);
}

std::vector<std::string> comparison_row(const std::string& name, const std::vector<WindowScore>& windows) {
  const Estimate ppl = perplexity(windows);
  const Estimate ratio = perplexity_ratio(windows);
  const Estimate kl = mean_kl(windows);
  const Estimate top = top_agreement(windows);
  std::optional<double> top_error = top.error;
  if (top_error.has_value()) *top_error *= 100;
  return {name,
          with_error(fixed(ppl.value, 4), ppl.error, 4),
          with_error(fixed(ratio.value, 5), ratio.error, 5),
          kl.error.has_value() ? significant(kl.value) + " ±" + significant(*kl.error) : significant(kl.value),
          with_error(fixed(100 * top.value, 2), top_error, 2),
          significant(logprob_rms(windows)),
          significant(logprob_max(windows)),
          significant(logit_max(windows))};
}

void print_comparison(const Run& run, const Evaluation& result) {
  std::vector<std::vector<std::string>> rows = {
      {"model", "perplexity", "of reference's", "KL, nats", "same top, %", "logprob RMS", "max", "logit max"}};
  const Estimate ppl = perplexity(result.reference);
  rows.push_back({"reference", with_error(fixed(ppl.value, 4), ppl.error, 4), "1", "0", "100"});
  for (size_t i = 0; i < run.candidates.size(); ++i)
    rows.push_back(comparison_row(short_name(run, *run.candidates[i]), result.candidates[i]));
  std::fputs(table_text(rows, "").c_str(), stdout);
  if (run.candidates.size() < 2) return;
  rows = {{"KL beside that of " + short_name(run, *run.candidates.front()), "ratio", "95 % interval"}};
  for (size_t i = 1; i < run.candidates.size(); ++i) {
    const auto interval = kl_ratio_interval(result.candidates[i], result.candidates.front());
    const double ratio = mean_kl(result.candidates[i]).value / mean_kl(result.candidates.front()).value;
    rows.push_back({short_name(run, *run.candidates[i]), interval.has_value() ? fixed(ratio, 3) : "none",
                    interval.has_value() ? fixed(interval->low, 3) + " to " + fixed(interval->high, 3) : ""});
  }
  std::printf("\n%s", table_text(rows, "").c_str());
}

}  // namespace

Status command_eval(const Invocation& invocation) {
  const Options& options = invocation.options;
  if (options.store && options.reference.empty())
    return invalid_argument("--store keeps a comparison: give the model's original as --reference");
  QUIRE_ASSIGN_OR_RETURN(Run run, open_run(options));
  if (run.reference != nullptr) QUIRE_RETURN_IF_ERROR(load(*run.reference, options.window));
  for (const auto& candidate : run.candidates) QUIRE_RETURN_IF_ERROR(load(*candidate, options.window));
  QUIRE_ASSIGN_OR_RETURN(const Evaluation result, judge(run));
  if (options.store) {
    const Proof proof = proof_of(result, run.text, run.text_name, run.text_sha256);
    QUIRE_RETURN_IF_ERROR(
        store_notes(run.candidates.front()->checkpoint(), {.proof = proof_text(proof), .k_factors = {}}));
  }
  if (options.json) {
    print_json(run, result);
    return {};
  }
  print_header(run, result);
  run.reference != nullptr ? print_comparison(run, result) : print_likelihoods(run, result);
  return {};
}

}  // namespace quire
