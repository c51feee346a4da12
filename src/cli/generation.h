// From options to a generator and its requests, and what its results say about speed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/json_object.h"
#include "engine/generator.h"
#include "options/options.h"

namespace quire {

// The model that --model names, its weights not yet loaded.
Result<std::unique_ptr<Generator>> open_generator(const Options& options);

// Loads the weights, unless that was done, with progress on standard error where that is a terminal.
Status load_with_progress(Generator& generator);

// See engine/sampling_defaults.h for what decides where an option was not given.
Result<Request> generate_request(const Options& options, const Hparams& hparams, std::vector<int32_t> prompt);

// One line for people: tokens, time to first token, speeds.
std::string timings_text(const RequestTimings& timings);

// Whether the answer depends on a seed that nobody gave, so that it has to be reported.
bool seed_was_drawn(const Options& options, const Request& request);

// The memory that the model takes, on one line.
std::string plan_text(const MemoryPlan& plan, int64_t request_bytes = 0);

}  // namespace quire
