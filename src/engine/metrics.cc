#include "engine/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>

namespace quire {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

// vLLM's buckets, seconds.
const Buckets kFirstTokenBuckets = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                                    1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const Buckets kTokenBuckets = {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
const Buckets kRequestBuckets = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const Buckets kStepRowBuckets = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const Buckets kLengthBuckets = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

}  // namespace

struct EngineMetrics::Impl {
  explicit Impl(const std::string& model_name) : labels{{"model_name", model_name}} {}

  // One measurement under quire's name and under vLLM's. Queue and prefill keep vLLM's coarse buckets under its name
  // only: under ours they start at a millisecond.
  struct Timing {
    Histogram* own;
    Histogram* alias;
    void observe(double seconds) const {
      own->Observe(seconds);
      alias->Observe(seconds);
    }
  };
  Timing timing(const char* name, const char* alias, const char* help, const Buckets& own_buckets,
                const Buckets& alias_buckets) {
    return {&histogram(std::string("quire_") + name, help, own_buckets),
            &histogram(std::string("vllm:") + alias, help, alias_buckets)};
  }
  Histogram& histogram(const std::string& name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
  }
  Counter& counter(const std::string& name, const char* help, const prometheus::Labels& more = {}) {
    return counters(name, help).Add(with(more));
  }
  prometheus::Family<Counter>& counters(const std::string& name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Gauge& gauge(const std::string& name, const char* help, const prometheus::Labels& more = {}) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(with(more));
  }
  prometheus::Labels with(prometheus::Labels more) const {
    more.insert(labels.begin(), labels.end());
    return more;
  }
  // Moves a counter to a total that only grows.
  static void advance(Counter& counter, int64_t total) {
    counter.Increment(std::max(0.0, static_cast<double>(total) - counter.Value()));
  }

  prometheus::Registry registry;
  prometheus::Labels labels;

  Timing first_token = timing("time_to_first_token_seconds", "time_to_first_token_seconds", "Submit to first token.",
                              kFirstTokenBuckets, kFirstTokenBuckets);
  Timing token_gap = timing("inter_token_latency_seconds", "inter_token_latency_seconds",
                            "Gap between deliveries of one choice.", kTokenBuckets, kTokenBuckets);
  Timing per_token = timing("time_per_output_token_seconds", "request_time_per_output_token_seconds",
                            "(E2E - TTFT) / (tokens - 1), per request.", kTokenBuckets, kTokenBuckets);
  Timing end_to_end = timing("e2e_request_latency_seconds", "e2e_request_latency_seconds", "Submit to end.",
                             kRequestBuckets, kRequestBuckets);
  Timing queue = timing("request_queue_time_seconds", "request_queue_time_seconds", "Submit to first scheduled.",
                        kFirstTokenBuckets, kRequestBuckets);
  Timing prefill = timing("request_prefill_time_seconds", "request_prefill_time_seconds",
                          "First scheduled to first token.", kFirstTokenBuckets, kRequestBuckets);
  Timing decode = timing("request_decode_time_seconds", "request_decode_time_seconds", "First token to last.",
                         kRequestBuckets, kRequestBuckets);
  Timing prompt_length = timing("request_prompt_tokens", "request_prompt_tokens", "Prompt tokens of a request.",
                                kLengthBuckets, kLengthBuckets);
  Timing answer_length = timing("request_generation_tokens", "request_generation_tokens",
                                "Generated tokens of a request.", kLengthBuckets, kLengthBuckets);
  Timing step_rows = timing("step_rows", "iteration_tokens_total", "Rows of a step.", kStepRowBuckets, kStepRowBuckets);
  Histogram& step_seconds = histogram("quire_step_seconds", "Duration of a step.", kTokenBuckets);

  Counter& prompt_tokens = counter("quire_prompt_tokens_total", "Prompt tokens of ended requests.");
  Counter& prompt_tokens_alias = counter("vllm:prompt_tokens_total", "Prompt tokens of ended requests.");
  Counter& generation_tokens = counter("quire_generation_tokens_total", "Generated tokens of ended requests.");
  Counter& generation_tokens_alias = counter("vllm:generation_tokens_total", "Generated tokens of ended requests.");
  prometheus::Family<Counter>& ended = counters("quire_requests_total", "Requests by how they ended.");
  prometheus::Family<Counter>& succeeded = counters("vllm:request_success_total", "Requests that finished, by reason.");
  prometheus::Family<Counter>& refused =
      counters("quire_requests_refused_total", "Requests refused at submit, by reason.");

  Gauge& running = gauge("quire_requests_running", "Requests that hold pages.");
  Gauge& running_alias = gauge("vllm:num_requests_running", "Requests that hold pages.");
  Gauge& waiting = gauge("quire_requests_waiting", "Requests in the queue.");
  Gauge& waiting_alias = gauge("vllm:num_requests_waiting", "Requests in the queue.");
  Gauge& kv_usage_alias = gauge("vllm:kv_cache_usage_perc", "Share of KV slots in use, 0 to 1, of the fullest group.");
  Gauge& step_time_error = gauge("quire_step_time_error", "Mean relative error of the step-time model.");
  Gauge& active_threads = gauge("quire_threads_active", "Compute threads in use; fewer while others take cores.");
  Counter& thread_retreats = counter("quire_thread_retreats_total", "Times that fewer compute threads were taken.");
  prometheus::Family<Gauge>& kv_slots =
      prometheus::BuildGauge().Name("quire_kv_slots").Help("Token slots of a KV group by state.").Register(registry);

  Counter& prefix_queries =
      counter("quire_prefix_cache_query_tokens_total", "Prompt tokens looked up in the prefix cache.");
  Counter& prefix_queries_alias =
      counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.");
  Counter& prefix_hits = counter("quire_prefix_cache_hit_tokens_total", "Prompt tokens found in the prefix cache.");
  Counter& prefix_hits_alias = counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.");
  Counter& preemptions = counter("quire_preemptions_total", "Requests put back into the queue for lack of pages.");
  Counter& preemptions_alias =
      counter("vllm:num_preemptions_total", "Requests put back into the queue for lack of pages.");
  Counter& recomputed = counter("quire_recomputed_tokens_total", "Tokens computed again after a preemption.");
  Counter& evictions = counter("quire_prefix_cache_evictions_total", "Cached pages given to new tokens.");
  Counter& wasted_rows =
      counter("quire_wasted_rows_total", "Rows spent on finished sequences (padded static batching).");
};

EngineMetrics::EngineMetrics(const std::string& model_name) : impl_(std::make_unique<Impl>(model_name)) {}
EngineMetrics::~EngineMetrics() = default;

void EngineMetrics::step(int64_t rows, double seconds) {
  impl_->step_rows.observe(static_cast<double>(rows));
  impl_->step_seconds.Observe(seconds);
}

void EngineMetrics::token_gap(double seconds) { impl_->token_gap.observe(seconds); }

void EngineMetrics::first_token(double seconds) { impl_->first_token.observe(seconds); }

void EngineMetrics::request_ended(const RequestTimings& t, std::string_view reason) {
  impl_->ended.Add(impl_->with({{"reason", std::string(reason)}})).Increment();
  impl_->prompt_tokens.Increment(static_cast<double>(t.prompt_tokens));
  impl_->prompt_tokens_alias.Increment(static_cast<double>(t.prompt_tokens));
  impl_->generation_tokens.Increment(static_cast<double>(t.generated_tokens));
  impl_->generation_tokens_alias.Increment(static_cast<double>(t.generated_tokens));
  if (reason != "stop" && reason != "length") return;
  impl_->succeeded.Add(impl_->with({{"finished_reason", std::string(reason)}})).Increment();
  impl_->queue.observe(t.queued_ms / 1e3);
  impl_->prefill.observe(t.prefill_ms / 1e3);
  impl_->decode.observe(t.decode_ms / 1e3);
  impl_->end_to_end.observe((t.ttft_ms + t.decode_ms) / 1e3);
  impl_->prompt_length.observe(static_cast<double>(t.prompt_tokens));
  impl_->answer_length.observe(static_cast<double>(t.generated_tokens));
  if (t.generated_tokens > 1) impl_->per_token.observe(t.decode_ms / 1e3 / static_cast<double>(t.generated_tokens - 1));
}

void EngineMetrics::request_refused(std::string_view reason) {
  impl_->refused.Add(impl_->with({{"reason", std::string(reason)}})).Increment();
}

void EngineMetrics::set(const EngineGauges& g) {
  Impl& m = *impl_;
  m.running.Set(static_cast<double>(g.running));
  m.running_alias.Set(static_cast<double>(g.running));
  m.waiting.Set(static_cast<double>(g.waiting));
  m.waiting_alias.Set(static_cast<double>(g.waiting));
  m.step_time_error.Set(g.step_time_error);
  double fullest = 0;
  for (const EngineGauges::KvGroup& group : g.kv_groups) {
    const auto slots = [&](const char* state, int64_t count) {
      m.kv_slots.Add(m.with({{"group", group.name}, {"state", state}})).Set(static_cast<double>(count));
    };
    slots("total", group.slots);
    slots("used", group.used_slots);
    slots("live", group.live_slots);
    slots("wasted", group.used_slots - group.live_slots);
    if (group.slots > 0)
      fullest = std::max(fullest, static_cast<double>(group.used_slots) / static_cast<double>(group.slots));
  }
  m.kv_usage_alias.Set(fullest);
  Impl::advance(m.prefix_queries, g.prefix_query_tokens);
  Impl::advance(m.prefix_queries_alias, g.prefix_query_tokens);
  Impl::advance(m.prefix_hits, g.prefix_hit_tokens);
  Impl::advance(m.prefix_hits_alias, g.prefix_hit_tokens);
  Impl::advance(m.preemptions, g.preemptions);
  Impl::advance(m.preemptions_alias, g.preemptions);
  Impl::advance(m.recomputed, g.recomputed_tokens);
  Impl::advance(m.evictions, g.evictions);
  Impl::advance(m.wasted_rows, g.wasted_rows);
}

void EngineMetrics::threads(int active, int64_t retreats) {
  impl_->active_threads.Set(active);
  Impl::advance(impl_->thread_retreats, retreats);
}

std::string EngineMetrics::text() const { return prometheus::TextSerializer().Serialize(impl_->registry.Collect()); }

}  // namespace quire
