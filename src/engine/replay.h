// Runs recorded steps again and compares: the tool for "a wrong token".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/executor.h"
#include "engine/recording.h"

namespace quire {

struct ReplayDifference {
  int64_t step = 0;   // counted from 0
  SequenceId id = 0;  // whose tokens differ; 0: only the logits do
  std::vector<int32_t> recorded;
  std::vector<int32_t> replayed;
};

struct ReplayReport {
  int64_t steps = 0;  // that were compared
  int64_t tokens = 0;
  bool cut_off = false;  // the file ends amid a step
  std::optional<ReplayDifference> first;
};

// Runs the rest of the recording on `executor`, up to the first step that differs.
Result<ReplayReport> replay(RecordingReader& reader, Executor& executor);

// The model of a recorded run, its memory as large as it was then. `threads` 0: the cores this process may use.
Result<std::unique_ptr<Executor>> load_recorded(const RecordedRun& run, int threads,
                                                const std::function<void(double)>& progress);

}  // namespace quire
