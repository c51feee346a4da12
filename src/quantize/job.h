// One run of `quire quantize`: from a checkpoint, through its layers, to a file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "formats/checkpoint.h"
#include "formats/checkpoint_writer.h"
#include "model/config.h"
#include "quantize/target.h"

namespace quire {

struct QuantizeJob {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  Device& device;
  const QuantizeTarget& target;
  std::vector<std::vector<int32_t>> sequences;  // what it is calibrated on
  std::string settings;                         // everything that the result depends on, for resuming
  std::string out;
};

struct QuantizeProgress {
  std::function<void(std::string_view phase, double fraction)> show;  // null: nobody looks
  std::function<bool()> cancelled;                                    // null: never
};

struct QuantizeOutcome {
  std::unique_ptr<CheckpointWriter> writer;  // holds every tensor; finish() it
  size_t resumed_layers = 0;                 // that an earlier run had done
};

// Ends with every tensor written. A cancelled job keeps its work, and a later one goes on from there.
Result<QuantizeOutcome> run_quantize_job(const QuantizeJob& job, const QuantizeProgress& progress);

// Forgets the work of a job whose output is complete.
Status remove_work(const QuantizeJob& job);

}  // namespace quire
