#include "server/timings.h"

#include <algorithm>
#include <cstdint>

namespace quire {
namespace {

double per_second(int64_t tokens, double ms) {
  return tokens > 0 && ms > 0 ? 1000.0 * static_cast<double>(tokens) / ms : 0;
}

}  // namespace

// The first token of each choice comes out of the prefill.
void write_timings(const RequestTimings& timings, JsonWriter& out) {
  const int64_t prefilled = timings.prompt_tokens - timings.cached_tokens;
  const int64_t decoded = std::max<int64_t>(0, timings.generated_tokens - 1);
  out.begin_object()
      .number("cache_n", timings.cached_tokens)
      .number("prompt_n", prefilled)
      .number("prompt_ms", timings.prefill_ms)
      .number("prompt_per_second", per_second(prefilled, timings.prefill_ms))
      .number("predicted_n", timings.generated_tokens)
      .number("predicted_ms", timings.decode_ms)
      .number("predicted_per_second", per_second(decoded, timings.decode_ms))
      .number("queued_ms", timings.queued_ms)
      .number("ttft_ms", timings.ttft_ms)
      .number("preemptions", timings.preemptions)
      .end_object();
}

std::string timings_json(const RequestTimings& timings) {
  std::string json;
  JsonWriter out(&json);
  write_timings(timings, out);
  return json;
}

}  // namespace quire
