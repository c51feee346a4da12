// Everything that decides how an engine serves. Names and defaults of the flags live in options/options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/kv_cache.h"
#include "capacity/model_options.h"
#include "sched/scheduler.h"

namespace quire {

struct EngineOptions {
  ModelOptions model;
  std::string served_model_name;             // in metrics; empty: the model's file name
  std::optional<std::string> chat_template;  // Jinja source in place of the model's own
  SchedulerConfig scheduler;
  KvLayout kv_layout = KvLayout::kPaged;
  bool prefix_caching = true;
  int64_t kv_memory_bytes = 0;      // of the page pool; 0: by the rule of plan_pool()
  int64_t memory_budget_bytes = 0;  // for everything; 0: what is available
  int64_t trace_requests = 1000;    // timelines kept
};

}  // namespace quire
