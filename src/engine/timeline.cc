#include "engine/timeline.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace quire {
namespace {

// A generation of a hundred thousand tokens keeps its first steps; the rest are counted.
constexpr size_t kMaxEventsOfOne = 4096;

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

void Timeline::drop_oldest() {
  const auto oldest = stories_.find(order_.front());
  events_ -= oldest->second.events.size();
  stories_.erase(oldest);
  order_.pop_front();
}

void Timeline::begin(const std::string& id, int64_t time_ns, int64_t prompt_tokens, uint64_t reader) {
  const std::lock_guard lock(mutex_);
  if (capacity_ == 0) return;
  const auto known = stories_.find(id);
  if (known == stories_.end()) {
    if (order_.size() == capacity_) drop_oldest();
    order_.push_back(id);
  } else {
    events_ -= known->second.events.size();
  }
  Story& story = stories_[id];
  story = Story{};
  story.reader = reader;
  story.prompt_tokens = prompt_tokens;
  story.events.push_back({.time_ns = time_ns, .kind = TraceEvent::Kind::kQueued});
  ++events_;
}

void Timeline::add(std::string_view id, const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  const auto found = stories_.find(id);
  if (found == stories_.end()) return;
  Story& story = found->second;
  if (story.events.size() >= kMaxEventsOfOne && event.kind == TraceEvent::Kind::kStep) {
    ++story.dropped_steps;
    return;
  }
  story.events.push_back(event);
  ++events_;
  while (events_ > kMaxEvents && order_.size() > 1 && order_.front() != id) drop_oldest();
}

Result<std::string> Timeline::json(std::string_view id, uint64_t reader) const {
  std::optional<Story> found;
  {
    const std::lock_guard lock(mutex_);
    const auto known = stories_.find(id);
    if (known != stories_.end() && known->second.reader == reader) found = known->second;
  }
  if (!found) {
    return not_found("no trace of request \"" + std::string(id) + "\": unknown, or older than the last " +
                     std::to_string(capacity_));
  }
  const Story& story = *found;
  nlohmann::ordered_json json = {
      {"id", std::string(id)}, {"prompt_tokens", story.prompt_tokens}, {"events", nlohmann::ordered_json::array()}};
  for (const TraceEvent& event : story.events) json["events"].push_back(to_json(event, story.events.front().time_ns));
  if (story.dropped_steps > 0) json["steps_not_listed"] = story.dropped_steps;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace quire
