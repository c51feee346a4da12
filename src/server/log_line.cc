#include "server/log_line.h"

#include <cstdio>
#include <ctime>

#include "json/json_writer.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr size_t kMaxTextBytes = 256;

// As much of what a client chose as a line may carry.
std::string_view cut(std::string_view text) { return text.substr(0, kMaxTextBytes); }

// Three decimals: microseconds.
double rounded(double ms) { return static_cast<double>(static_cast<int64_t>(ms * 1000.0)) / 1000.0; }

// "2026-01-02T03:04:05.678Z"
std::string utc_text(int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[48];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

// "03:04:05", by the clock of this place.
std::string clock_text(int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%H:%M:%S", &parts)};
}

std::string duration_text(double ms) {
  char text[40];
  ms < 999.5 ? std::snprintf(text, sizeof text, "%.0f ms", ms) : std::snprintf(text, sizeof text, "%.2f s", ms / 1000);
  return text;
}

// A terminal obeys C0 and C1.
std::string harmless(std::string_view text) {
  std::string shown;
  const std::string repaired = repair_utf8(text);
  for (size_t i = 0; i < repaired.size();) {
    const uint32_t length = utf8_length(repaired[i]);
    const char32_t c = utf8_decode(repaired.data() + i);
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
    shown += control ? std::string(kReplacementCharacter) : repaired.substr(i, length);
    i += length;
  }
  return shown;
}

std::string readable(const RequestRecord& record) {
  std::string line = std::to_string(record.status) + "  " + harmless(cut(record.method)) + " " +
                     harmless(cut(record.path)) + "  " + duration_text(record.duration_ms);
  if (!record.error_code.empty()) line += "  " + harmless(cut(record.error_code));
  if (!record.generation_id.empty()) {
    line += "  " + std::to_string(record.prompt_tokens) + " + " + std::to_string(record.completion_tokens) + " tokens";
    if (record.cached_tokens > 0) line += " (" + std::to_string(record.cached_tokens) + " cached)";
    line += ", first after " + duration_text(record.ttft_ms);
    if (record.queued_ms >= 1) line += " (" + duration_text(record.queued_ms) + " queued)";
  }
  return line + "  " + harmless(cut(record.peer));
}

}  // namespace

std::string request_line(LogForm form, int64_t ms, const RequestRecord& record) {
  if (form == LogForm::kPeople) return clock_text(ms) + "  " + readable(record);
  std::string line;
  JsonWriter out(&line);
  out.begin_object().text("time", utc_text(ms)).text("event", "request").text("request_id", record.request_id);
  out.text("method", cut(record.method)).text("path", cut(record.path)).text("peer", record.peer);
  out.number("status", record.status).number("duration_ms", rounded(record.duration_ms));
  if (!record.error_code.empty()) out.text("error", record.error_code);
  if (!record.generation_id.empty()) {
    out.text("id", record.generation_id)
        .number("prompt_tokens", record.prompt_tokens)
        .number("cached_tokens", record.cached_tokens)
        .number("completion_tokens", record.completion_tokens)
        .number("queued_ms", rounded(record.queued_ms))
        .number("ttft_ms", rounded(record.ttft_ms));
  }
  out.end_object();
  return line;
}

std::string event_line(LogForm form, int64_t ms, std::string_view event, std::string_view detail) {
  if (form == LogForm::kPeople) {
    return clock_text(ms) + "  " + harmless(event) + (detail.empty() ? "" : ": ") + harmless(detail);
  }
  std::string line;
  JsonWriter(&line).begin_object().text("time", utc_text(ms)).text("event", event).text("detail", detail).end_object();
  return line;
}

void add_loss(LogForm form, uint64_t lines, std::string* line) {
  if (form == LogForm::kPeople) {
    line->append("  (" + std::to_string(lines) + " lines before this one were lost)");
  } else {
    line->insert(line->size() - 1, ",\"dropped_lines_before\":" + std::to_string(lines));
  }
}

}  // namespace quire
