// What the batching policies are worth on this machine: the same requests through the same engine, model and kernels
// under each policy in turn.
//
//   quire_policy_bench MODEL [REQUESTS [MEAN_TOKENS [SLOTS [THREADS [LOADS [POLICIES]]]]]]
//
// Three loads: all requests at once with exponentially distributed answer lengths ("exponential"), all at once with equal
// lengths, where static batching loses nothing ("equal"), and Poisson arrivals ("poisson") at half of what the mixed
// policy serves. LOADS and POLICIES name some of them, comma-separated. Prints Markdown.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/test_engine.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kSeed = 1;
constexpr PolicyKind kPolicies[] = {PolicyKind::kStaticPadded, PolicyKind::kStatic, PolicyKind::kDynamic,
                                    PolicyKind::kContinuous, PolicyKind::kMixed};

struct Setup {
  std::string model;
  int64_t requests = 256;
  int64_t mean_tokens = 32;
  int64_t slots = 8;
  int threads = 2;
  std::string loads = "exponential,equal,poisson";
  std::string policies = "static-padded,static,dynamic,continuous,mixed";

  bool has(const char* load) const { return names(loads, load); }
  bool has(PolicyKind policy) const { return names(policies, policy_name(policy)); }

  static bool names(const std::string& list, std::string_view name) {
    return ("," + list + ",").find("," + std::string(name) + ",") != std::string::npos;
  }
};

struct Arrival {
  Request request;
  double at_s = 0;
};

struct Outcome {
  double tokens_per_s = 0;
  double requests_per_s = 0;
  double mean_latency_s = 0;
  double p99_latency_s = 0;
  int64_t wasted_rows = 0;
};

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// Prompts of 1 to 16 tokens; answers of exponential or equal length; Poisson arrivals, or all at once with rate 0.
std::vector<Arrival> make_load(const Setup& setup, int64_t vocab, bool equal_lengths, double rate) {
  std::mt19937_64 random(kSeed);
  std::exponential_distribution<double> length(1.0 / static_cast<double>(setup.mean_tokens));
  std::vector<Arrival> load;
  double at_s = 0;
  for (int64_t i = 0; i < setup.requests; ++i) {
    Arrival arrival;
    arrival.request.id = std::to_string(i);
    for (uint64_t t = 0; t < 1 + random() % 16; ++t)
      arrival.request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab)));
    const auto drawn = static_cast<int64_t>(std::ceil(length(random)));
    arrival.request.max_tokens =
        equal_lengths ? setup.mean_tokens : std::clamp<int64_t>(drawn, 1, 16 * setup.mean_tokens);
    arrival.request.sampling.temperature = 0;
    arrival.request.ignore_eos = true;
    if (rate > 0) at_s += std::exponential_distribution<double>(rate)(random);
    arrival.at_s = at_s;
    load.push_back(std::move(arrival));
  }
  return load;
}

Result<std::unique_ptr<TestEngine>> make_engine(const Setup& setup, PolicyKind policy) {
  TestEngineOptions options;
  options.path = setup.model;
  options.device.threads = setup.threads;
  options.context = 1024;
  options.kv_tokens = (setup.slots + 1) * 1024;
  options.prefix_caching = false;
  options.scheduler.max_seqs = setup.slots;
  options.scheduler.policy.kind = policy;
  options.scheduler.policy.batch_size = setup.slots;
  // Static batches wait until they are full, though not for ever; dynamic ones go after a moment with what there is.
  options.scheduler.policy.max_delay_ns = policy == PolicyKind::kDynamic ? 50'000'000 : 10'000'000'000;
  return TestEngine::create(options);
}

Outcome run_load(TestEngine& engine, const std::vector<Arrival>& load) {
  EngineCore& core = engine.core();
  std::vector<double> latencies;
  int64_t tokens = 0;
  const int64_t start_ns = now_ns();
  size_t next = 0;
  while (next < load.size() || core.live_requests() > 0) {
    const double elapsed_s = static_cast<double>(now_ns() - start_ns) / 1e9;
    for (; next < load.size() && load[next].at_s <= elapsed_s; ++next) {
      const auto submitted_ns = start_ns + static_cast<int64_t>(load[next].at_s * 1e9);
      const Status accepted = core.submit(
          load[next].request,
          [&, submitted_ns](Event event) {
            tokens += static_cast<int64_t>(event.ids.size());
            if (event.kind == Event::Kind::kFinished)
              latencies.push_back(static_cast<double>(now_ns() - submitted_ns) / 1e9);
          },
          submitted_ns);
      if (!accepted.ok()) std::fprintf(stderr, "refused: %s\n", accepted.message().c_str());
    }
    if (!core.step(now_ns)) std::this_thread::yield();
  }
  const double duration_s = static_cast<double>(now_ns() - start_ns) / 1e9;
  std::sort(latencies.begin(), latencies.end());
  Outcome outcome;
  outcome.tokens_per_s = static_cast<double>(tokens) / duration_s;
  outcome.requests_per_s = static_cast<double>(latencies.size()) / duration_s;
  outcome.mean_latency_s =
      std::accumulate(latencies.begin(), latencies.end(), 0.0) / static_cast<double>(latencies.size());
  outcome.p99_latency_s = latencies[latencies.size() * 99 / 100];
  outcome.wasted_rows = core.scheduler().counters().wasted_rows;
  return outcome;
}

Result<Outcome> measure(const Setup& setup, PolicyKind policy, bool equal_lengths, double rate) {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, make_engine(setup, policy));
  return run_load(*engine, make_load(setup, engine->tokenizer().vocab_size(), equal_lengths, rate));
}

Status print_table(const Setup& setup, const char* title, bool equal_lengths, double rate) {
  std::printf(
      "\n### %s\n\n| policy | tokens/s | requests/s | mean latency s | p99 latency s | wasted rows |\n"
      "|---|---|---|---|---|---|\n",
      title);
  for (const PolicyKind policy : kPolicies) {
    if (!setup.has(policy)) continue;
    QUIRE_ASSIGN_OR_RETURN(const Outcome outcome, measure(setup, policy, equal_lengths, rate));
    std::printf("| %s | %.1f | %.2f | %.2f | %.2f | %lld |\n", std::string(policy_name(policy)).c_str(),
                outcome.tokens_per_s, outcome.requests_per_s, outcome.mean_latency_s, outcome.p99_latency_s,
                static_cast<long long>(outcome.wasted_rows));
    std::fflush(stdout);
  }
  return {};
}

Status run(const Setup& setup) {
  if (setup.has("exponential")) QUIRE_RETURN_IF_ERROR(print_table(setup, "All at once, exponential lengths", false, 0));
  if (setup.has("equal")) QUIRE_RETURN_IF_ERROR(print_table(setup, "All at once, equal lengths", true, 0));
  if (setup.has("poisson")) {
    QUIRE_ASSIGN_OR_RETURN(const Outcome saturated, measure(setup, PolicyKind::kMixed, false, 0));
    QUIRE_RETURN_IF_ERROR(
        print_table(setup, "Poisson arrivals at half load, exponential lengths", false, saturated.requests_per_s / 2));
  }
  return {};
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::Setup setup;
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s MODEL [REQUESTS [MEAN_TOKENS [SLOTS [THREADS [LOADS [POLICIES]]]]]]\n", argv[0]);
    return 2;
  }
  setup.model = argv[1];
  if (argc > 2) setup.requests = std::atoll(argv[2]);
  if (argc > 3) setup.mean_tokens = std::atoll(argv[3]);
  if (argc > 4) setup.slots = std::atoll(argv[4]);
  if (argc > 5) setup.threads = std::atoi(argv[5]);
  if (argc > 6) setup.loads = argv[6];
  if (argc > 7) setup.policies = argv[7];
  const quire::Status status = quire::run(setup);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}
