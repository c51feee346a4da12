#include "measure/model_bench.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "capacity/model_setup.h"
#include "capacity/opened_model.h"
#include "formats/checkpoint.h"
#include "measure/roof.h"
#include "model/model.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kStepRows = 512;

struct Bench {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Model> model;
  std::vector<int32_t> pages;  // [sequence][page], the same for every group
  int64_t pages_per_sequence = 0;
  std::vector<float> logits;
  std::mt19937 random{1};
  Status failure;             // of a step; speeds mean nothing then
  int64_t weight_bytes = 0;   // packed, read by a step that needs logits
  int64_t layer_weights = 0;  // values of the layers' matrices
  int64_t head_weights = 0;

  int32_t token() { return static_cast<int32_t>(random() % static_cast<uint32_t>(model->config().vocab_size)); }

  // The next `rows` tokens of each of the sequences [first, first + count), all at `position`; then the logits of their
  // last rows.
  void step(int64_t first, int64_t count, int64_t position, int64_t rows, bool want_logits) {
    StepInput input;
    std::vector<int32_t> last_rows;
    for (int64_t s = first; s < first + count; ++s) {
      input.sequences.push_back({.rows = rows,
                                 .first_position = position,
                                 .page_tables = std::vector<const int32_t*>(model->config().kv_groups.size(),
                                                                            pages.data() + s * pages_per_sequence)});
      for (int64_t i = 0; i < rows; ++i) input.tokens.push_back(token());
      last_rows.push_back(static_cast<int32_t>((s - first + 1) * rows - 1));
    }
    if (failure.ok()) failure = model->forward(input);
    if (want_logits) model->logits(last_rows, logits.data());
  }

  void prefill(int64_t sequence, int64_t tokens) {
    for (int64_t at = 0; at < tokens; at += kStepRows) {
      step(sequence, 1, at, std::min(kStepRows, tokens - at), at + kStepRows >= tokens);
    }
  }
};

int64_t tokens_per_sequence(const ModelWork& work) {
  return work.kind == ModelWork::Kind::kPrefill ? work.tokens : work.depth + work.tokens + 1;
}

Result<Bench> open(const ModelOptions& options, const std::vector<ModelWork>& works) {
  Bench bench;
  QUIRE_ASSIGN_OR_RETURN(ModelHeaders headers, open_headers(options));
  const ModelConfig& config = headers.config;
  bench.checkpoint = std::move(headers.checkpoint);
  QUIRE_ASSIGN_OR_RETURN(auto device, make_device(options));
  int64_t context = 0;
  int64_t sequences = 0;
  for (const ModelWork& work : works) {
    if (tokens_per_sequence(work) > config.context_length) {
      return out_of_range(work_name(work) + " needs " + std::to_string(tokens_per_sequence(work)) +
                          " tokens; the model's context has " + std::to_string(config.context_length));
    }
    context = std::max(context, tokens_per_sequence(work));
    sequences = std::max(sequences, work.sequences);
  }
  bench.pages_per_sequence = (context + kPageTokens - 1) / kPageTokens;
  bench.pages.resize(static_cast<size_t>(sequences * bench.pages_per_sequence));
  std::iota(bench.pages.begin(), bench.pages.end(), 0);
  std::shuffle(bench.pages.begin(), bench.pages.end(), bench.random);  // as after hours of serving
  ModelLimits limits;
  limits.weights = weight_options(options);
  limits.workspace = {.max_rows = std::max(kStepRows, sequences), .max_context = context};
  limits.kv_pages.assign(config.kv_groups.size(), static_cast<int64_t>(bench.pages.size()));
  bench.weight_bytes = weight_bytes(config, *bench.checkpoint, options.head, *headers.sizes);
  for (const TensorRef& tensor : bench.checkpoint->tensors()) {
    if (tensor.rows() < 2) continue;
    const int64_t values = tensor.rows() * tensor.columns();
    const bool table = tensor.rows() == config.vocab_size;
    if (!table) bench.layer_weights += values;
    if (table) bench.head_weights = values;
  }
  QUIRE_ASSIGN_OR_RETURN(bench.model, Model::load(*bench.checkpoint, config, std::move(device), limits, nullptr));
  if (options.kv_dtype == KvDtype::kInt8 && options.k_factors) {
    // As when serving: what factors cost is timed too. Which ones makes no difference.
    const std::vector<std::vector<int32_t>> passages = {{0, 1, 2, 3}};
    QUIRE_ASSIGN_OR_RETURN(std::vector<float> factors, bench.model->measure_k_factors(passages));
    bench.model->set_k_factors(std::move(factors));
  }
  bench.logits.resize(static_cast<size_t>(sequences * config.vocab_size));
  return bench;
}

// Tokens a second.
double run(Bench& bench, const ModelWork& work) {
  if (work.kind == ModelWork::Kind::kPrefill) {
    const auto start = Clock::now();
    bench.prefill(0, work.tokens);
    return static_cast<double>(work.tokens) / std::chrono::duration<double>(Clock::now() - start).count();
  }
  bench.step(0, work.sequences, work.depth, 1, true);
  const auto start = Clock::now();
  for (int64_t i = 1; i <= work.tokens; ++i) bench.step(0, work.sequences, work.depth + i, 1, true);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return static_cast<double>(work.tokens * work.sequences) / seconds;
}

}  // namespace

std::string work_name(const ModelWork& work) {
  if (work.kind == ModelWork::Kind::kPrefill) return "prefill " + std::to_string(work.tokens);
  std::string name = "decode";
  if (work.sequences > 1) name += " x" + std::to_string(work.sequences);
  if (work.depth > 0) name += " after " + std::to_string(work.depth);
  return name;
}

Status bench_model(const ModelOptions& options, const std::vector<ModelWork>& works, int repeats,
                   const std::function<void(const ModelSpeed&)>& on_speed) {
  QUIRE_ASSIGN_OR_RETURN(Bench bench, open(options, works));
  ThreadPool pool(options.threads > 0 ? options.threads : usable_cores());
  QUIRE_ASSIGN_OR_RETURN(BandwidthProbe probe, BandwidthProbe::create(pool));
  for (const ModelWork& work : works) {
    const bool decode = work.kind == ModelWork::Kind::kDecode;
    // Depth that was computed once serves every repeat: each writes the same positions anew.
    for (int64_t s = 0; decode && work.depth > 0 && s < work.sequences; ++s) bench.prefill(s, work.depth);
    ModelSpeed speed{.work = work};
    double probes = 0;
    run(bench, {.kind = work.kind,
                .tokens = std::min<int64_t>(work.tokens, 8),
                .depth = work.depth,
                .sequences = work.sequences});
    const int64_t kv_bytes = bench.model->device().kv_bytes_read();
    for (int i = 0; i < repeats; ++i) {
      if (decode) probes += probe.measure();
      speed.tokens_per_s.push_back(run(bench, work));
    }
    QUIRE_RETURN_IF_ERROR(bench.failure);
    // Decoding runs one step more than it times.
    const int64_t tokens = repeats * (decode ? (work.tokens + 1) * work.sequences : work.tokens);
    speed.kv_bytes =
        static_cast<double>(bench.model->device().kv_bytes_read() - kv_bytes) / static_cast<double>(tokens);
    if (decode) speed.probe_gbps = (probes + probe.measure()) / (repeats + 1);
    std::vector<double> sorted = speed.tokens_per_s;
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[sorted.size() / 2];
    const double rows_per_head = decode ? 1 : 1.0 / static_cast<double>(work.tokens);
    speed.gops = 2 * median *
                 (static_cast<double>(bench.layer_weights) + static_cast<double>(bench.head_weights) * rows_per_head) /
                 1e9;
    if (decode)
      speed.read_gbps = median / static_cast<double>(work.sequences) * static_cast<double>(bench.weight_bytes) / 1e9;
    on_speed(speed);
  }
  return {};
}

}  // namespace quire
