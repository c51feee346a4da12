#include "server/timings.h"

namespace quire {

void write_timings(const RequestTimings& timings, JsonWriter& out) {
  out.begin_object()
      .number("cache_n", timings.cached_tokens)
      .number("prompt_n", timings.prefilled_tokens())
      .number("prompt_ms", timings.prefill_ms)
      .number("prompt_per_second", timings.prefill_per_second())
      .number("predicted_n", timings.generated_tokens)
      .number("predicted_ms", timings.decode_ms)
      .number("predicted_per_second", timings.decode_per_second())
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
