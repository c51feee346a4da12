// The `timings` of an answer, under the names of llama.cpp's server: over HTTP and in --jsonl alike. docs/api.md has their
// meanings. Pure functions, any thread.
#pragma once

#include <string>

#include "engine/event.h"
#include "json/json_writer.h"

namespace quire {

void write_timings(const RequestTimings& timings, JsonWriter& out);
std::string timings_json(const RequestTimings& timings);

}  // namespace quire
