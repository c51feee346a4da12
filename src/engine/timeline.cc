#include "engine/timeline.h"

#include <nlohmann/json.hpp>

namespace quire {
namespace {

// A generation of a hundred thousand tokens keeps its first steps; the rest are counted.
constexpr size_t kMaxEvents = 4096;

const char* kind_name(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::kQueued:
      return "queued";
    case TraceEvent::Kind::kAdmitted:
      return "admitted";
    case TraceEvent::Kind::kStep:
      return "step";
    case TraceEvent::Kind::kPreempted:
      return "preempted";
    case TraceEvent::Kind::kFirstToken:
      return "first_token";
    case TraceEvent::Kind::kChoiceFinished:
      return "choice_finished";
    case TraceEvent::Kind::kFinished:
      return "finished";
    case TraceEvent::Kind::kFailed:
      return "failed";
  }
  return "";
}

nlohmann::ordered_json to_json(const TraceEvent& event, int64_t start_ns) {
  nlohmann::ordered_json json = {{"ms", static_cast<double>(event.time_ns - start_ns) / 1e6},
                                 {"event", kind_name(event.kind)}};
  switch (event.kind) {
    case TraceEvent::Kind::kAdmitted:
      json["cached_tokens"] = event.rows;
      json["match_ended"] = event.detail;
      if (event.differs_at >= 0) json["differs_at"] = event.differs_at;
      break;
    case TraceEvent::Kind::kStep:
      json["rows"] = event.rows;
      json["step_rows"] = event.step_rows;
      json["step_sequences"] = event.step_sequences;
      break;
    case TraceEvent::Kind::kChoiceFinished:
      json["choice"] = event.choice;
      json["reason"] = event.detail;
      break;
    case TraceEvent::Kind::kFailed:
      json["reason"] = event.detail;
      break;
    default:
      break;
  }
  return json;
}

}  // namespace

void Timeline::begin(const std::string& id, int64_t time_ns, int64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  if (stories_.find(id) == stories_.end()) {
    order_.push_back(id);
    if (order_.size() > capacity_) {
      stories_.erase(order_.front());
      order_.pop_front();
    }
  }
  Story& story = stories_[id];
  story = Story{};
  story.prompt_tokens = prompt_tokens;
  story.events.push_back({.time_ns = time_ns, .kind = TraceEvent::Kind::kQueued});
}

void Timeline::add(std::string_view id, const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  const auto found = stories_.find(id);
  if (found == stories_.end()) return;
  Story& story = found->second;
  if (story.events.size() >= kMaxEvents && event.kind == TraceEvent::Kind::kStep) {
    ++story.dropped_steps;
    return;
  }
  story.events.push_back(event);
}

Result<std::string> Timeline::json(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = stories_.find(id);
  if (found == stories_.end())
    return not_found("no trace of request \"" + std::string(id) + "\": unknown, or older than the last " +
                     std::to_string(capacity_));
  const Story& story = found->second;
  nlohmann::ordered_json json = {
      {"id", std::string(id)}, {"prompt_tokens", story.prompt_tokens}, {"events", nlohmann::ordered_json::array()}};
  for (const TraceEvent& event : story.events) json["events"].push_back(to_json(event, story.events.front().time_ns));
  if (story.dropped_steps > 0) json["steps_not_listed"] = story.dropped_steps;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace quire
