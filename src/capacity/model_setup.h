// Decisions that planning a model's memory and loading it must make alike.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "capacity/model_options.h"
#include "device/device.h"
#include "model/config.h"
#include "model/weights.h"

namespace quire {

// The sizes of the CPU device that the options ask for, without the device: what plans and descriptions need.
Result<std::unique_ptr<DeviceSizes>> make_device_sizes(const ModelOptions& options);

// The device itself, with its threads.
Result<std::unique_ptr<Device>> make_device(const ModelOptions& options);

// How its weights are loaded.
WeightOptions weight_options(const ModelOptions& options);

// The file's name without ".gguf", or the directory's.
std::string model_name_of(const std::string& path);

// Rows of the largest step: a prompt is prefilled in chunks of so many.
int64_t step_rows(int64_t context);

// Pages one sequence of `context` tokens needs in a group: all of them, or a ring that covers window and step.
int64_t pages_per_sequence(const KvGroup& group, int64_t context);

// The bookkeeping of so many pages a group for sequences of at most `context` tokens: paged, with prefix caching.
// The caller sets hash key and fingerprint (kv_fingerprint, loaded_model.h), where prompts of strangers or several models could meet.
KvCacheConfig kv_cache_config(const ModelConfig& config, const std::vector<int64_t>& pages, int64_t context);

// What the program takes without a model: stacks, heap, relocated tables (measured).
inline constexpr int64_t kProgramBytes = int64_t{6} << 20;

// Tokenizer heap, estimated from the vocabulary.
int64_t tokenizer_bytes(int64_t vocab_size);

// Anonymous memory that this process holds now; 0 where the system does not tell.
int64_t anonymous_memory_bytes();

}  // namespace quire
