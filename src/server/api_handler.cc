#include "server/api_handler.h"

#include <csignal>
#include <ctime>
#include <utility>

#include "base/memory_reserve.h"
#include "http/cors.h"
#include "json/json_writer.h"
#include "server/random_id.h"

namespace quire {
namespace {

constexpr size_t kMaxRequestIdBytes = 128;
// After the drain time: for the last errors to reach their clients.
constexpr auto kAbortGrace = std::chrono::seconds(1);

// A client's own id goes into logs and headers: printable ASCII only.
bool is_usable_id(std::string_view id) {
  if (id.empty() || id.size() > kMaxRequestIdBytes) return false;
  for (const char c : id) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

std::string request_id_of(const HttpRequest& request) {
  const std::string_view given = request.header("x-request-id");
  return is_usable_id(given) ? std::string(given) : random_id();
}

ApiError shutting_down() {
  return {.status = 503, .message = "the server is shutting down", .code = "shutting_down", .retry_after_s = 1};
}

}  // namespace

const ApiHandler::Route ApiHandler::kRoutes[] = {
    {.method = "GET", .path = "/", .open = true, .answer = &ApiHandler::answer_index},
    {.method = "GET", .path = "/health", .open = true, .answer = &ApiHandler::answer_health},
    {.method = "GET", .path = "/ready", .open = true, .answer = &ApiHandler::answer_ready},
    {.method = "GET", .path = "/version", .answer = &ApiHandler::answer_version},
    {.method = "GET", .path = "/metrics", .answer = &ApiHandler::answer_metrics},
    {.method = "GET", .path = "/v1/engine", .answer = &ApiHandler::answer_engine},
    {.method = "GET", .path = "/v1/models", .answer = &ApiHandler::answer_models},
    {.method = "GET", .path = "/v1/models/", .prefix = true, .answer = &ApiHandler::answer_model},
    {.method = "GET", .path = "/v1/requests/", .prefix = true, .answer = &ApiHandler::answer_trace},
    {.method = "POST", .path = "/v1/chat/completions", .answer = &ApiHandler::answer_chat},
    {.method = "POST", .path = "/v1/completions", .answer = &ApiHandler::answer_completions},
    {.method = "POST", .path = "/tokenize", .answer = &ApiHandler::answer_tokenize},
    {.method = "GET", .path = "/tokenizer_info", .answer = &ApiHandler::answer_tokenizer_info},
    {.method = "POST", .path = "/detokenize", .answer = &ApiHandler::answer_detokenize},
};

ApiHandler::ApiHandler(Parts parts)
    : parts_(parts),
      generations_([&http = parts.http](std::function<void()> task) { http.post(std::move(task)); }, parts.budget),
      workers_(WorkerLimits{}),
      started_s_(std::time(nullptr)) {}

std::string_view ApiHandler::path_of(const HttpRequest& request) {
  std::string_view path = request.path;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

const ApiHandler::Route* ApiHandler::find_route(std::string_view method, std::string_view path, bool* path_exists) {
  if (method == "HEAD") method = "GET";
  for (const Route& route : kRoutes) {
    if (route.prefix ? !path.starts_with(route.path) || path == route.path : path != route.path) continue;
    *path_exists = true;
    if (route.method == method) return &route;
  }
  return nullptr;
}

std::optional<ApiError> ApiHandler::check(const HttpRequest& request, const Route*& route) const {
  bool path_exists = false;
  route = find_route(request.method, path_of(request), &path_exists);
  const bool is_options = request.method == "OPTIONS";
  if (auto error = parts_.access.check(request, is_options || (route != nullptr && route->open))) return error;
  if (is_options) return std::nullopt;
  if (route == nullptr && path_exists) {
    return ApiError{.status = 405,
                    .message = request.path.substr(0, 100) + " does not answer " + request.method.substr(0, 20),
                    .code = "method_not_allowed"};
  }
  if (route == nullptr) {
    return ApiError{.status = 404,
                    .message = "there is no " + request.path.substr(0, 100) + "; see / for what there is",
                    .code = "unknown_url"};
  }
  if (!request.header("content-encoding").empty() &&
      !equals_ignoring_case(request.header("content-encoding"), "identity")) {
    return ApiError{.status = 415, .message = "the body is compressed; send it as plain JSON", .code = "unsupported"};
  }
  return std::nullopt;
}

std::optional<HttpResponse> ApiHandler::refuse(const HttpRequest& head) {
  const Route* route = nullptr;
  const std::optional<ApiError> error = check(head, route);
  if (!error) return std::nullopt;
  const RequestRecord record{.request_id = request_id_of(head),
                             .method = head.method,
                             .path = head.path,
                             .peer = head.peer,
                             .status = error->status,
                             .error_code = error->code};
  parts_.log.write(record);
  counters_.count(route == nullptr ? "other" : std::string(route->path), error->status);
  HttpResponse response = error_response(*error);
  response.headers.emplace_back("X-Request-Id", record.request_id);
  if (parts_.access.admits_page(head)) {
    for (auto& header : cors_headers(head)) response.headers.push_back(std::move(header));
  }
  if (error->status == 405) response.headers.emplace_back("Allow", "GET, HEAD, POST, OPTIONS");
  return response;
}

ApiHandler::ReplyPointer ApiHandler::make_reply(std::shared_ptr<HttpExchange> exchange, std::string_view route) {
  const HttpRequest& request = exchange->request();
  RequestRecord record{.method = request.method, .path = request.path, .peer = request.peer};
  record.request_id = request_id_of(request);
  HeaderList headers{{"X-Request-Id", record.request_id}};
  if (parts_.access.admits_page(request)) {
    for (auto& header : cors_headers(request)) headers.push_back(std::move(header));
  }
  return std::make_shared<Reply>(std::move(exchange), std::string(route), std::move(record), std::move(headers),
                                 parts_.log, counters_);
}

void ApiHandler::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  if (request.method == "OPTIONS") {
    HttpResponse response{.status = 204, .content_type = ""};
    response.headers = {{"Allow", "GET, HEAD, POST, OPTIONS"}};
    if (parts_.access.admits_page(request)) {
      for (auto& header : preflight_headers(request)) response.headers.push_back(std::move(header));
    }
    ReplyPointer reply = make_reply(std::move(exchange), "other");
    return reply->respond(std::move(response));
  }
  bool path_exists = false;
  const Route* route = find_route(request.method, path_of(request), &path_exists);
  (this->*route->answer)(make_reply(std::move(exchange), route->path));
}

bool ApiHandler::is_probe(const HttpRequest& head) {
  const std::string_view path = path_of(head);
  return head.method != "POST" && (path == "/health" || path == "/ready" || path == "/metrics");
}

HttpResponse ApiHandler::error(int status, std::string message, const HttpRequest* head) {
  counters_.count("other", status);
  HttpResponse response = error_response({.status = status, .message = std::move(message)});
  if (head == nullptr) return response;
  response.headers.emplace_back("X-Request-Id", request_id_of(*head));
  // Who asks from two origins is no page.
  if (head->count("origin") == 1 && parts_.access.admits_page(*head)) {
    for (auto& header : cors_headers(*head)) response.headers.push_back(std::move(header));
  }
  return response;
}

// --- the life of the server ----------------------------------------------------------------------------------------

void ApiHandler::stop(Status outcome) {
  if (stopped_) return;
  stopped_ = true;
  outcome_ = std::move(outcome);
  workers_.stop();
  parts_.http.stop();
}

// Whoever balances load hears of the end through /ready before connections are refused.
void ApiHandler::announce_end() {
  drain_begins_ = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(parts_.options.ready_delay_s * 1000.0));
  parts_.log.note("ending", std::to_string(generations_.size()) + " requests are running");
}

void ApiHandler::begin_drain() {
  drain_ends_ = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(parts_.options.drain_s * 1000.0));
  parts_.log.note("draining", std::to_string(generations_.size()) + " requests are running");
  parts_.engine.drain();
  parts_.http.drain();
}

void ApiHandler::signalled(int signal_number) {
  if (signal_number == SIGHUP || signal_number == SIGUSR1) return parts_.log.reopen();
  if (signal_number == SIGUSR2) return;
  if (drain_begins_) {
    if (parts_.options.on_second_signal) parts_.options.on_second_signal();
    return stop(cancelled(""));
  }
  announce_end();
  tick();
}

void ApiHandler::tick() {
  watch_memory();
  watch_steps();
  const Engine::State state = parts_.engine.state();
  if (state == Engine::State::kFailed && !was_ready_) return stop(parts_.engine.load_error());
  if (state == Engine::State::kReady && !was_ready_) {
    was_ready_ = true;
    for (const std::string& note : parts_.engine.load_notes()) parts_.log.note("loaded", note);
    parts_.log.note("ready", parts_.options.model_names.front());
  }
  const auto now = Clock::now();
  if (!drain_begins_ || now < *drain_begins_) return;
  if (!drain_ends_) begin_drain();
  if (generations_.size() == 0 && parts_.http.open_exchanges() == 0) return stop({});
  if (now >= *drain_ends_ && !aborted_) {
    aborted_ = true;
    generations_.abort_all(shutting_down());
  }
  if (now >= *drain_ends_ + kAbortGrace) stop({});
}

void ApiHandler::watch_memory() {
  const bool pressed = pressure_.look() || !MemoryReserve::refill();
  if (pressed == parts_.budget.closed()) return;
  parts_.budget.close(pressed);
  parts_.log.note("memory", pressed ? "the process is near the end of its memory: new requests are refused"
                                    : "there is memory again: requests are taken");
}

void ApiHandler::watch_steps() {
  const StepInProgress step = parts_.engine.step_in_progress();
  const bool stalled = step.seconds > parts_.options.stall_s;
  if (stalled == stalled_) return;
  stalled_ = stalled;
  parts_.log.note(stalled ? "stalled" : "recovered",
                  stalled
                      ? "a step of " + std::to_string(step.rows) + " rows of " + std::to_string(step.sequences) +
                            " sequences has not ended for " + std::to_string(static_cast<int64_t>(step.seconds)) + " s"
                      : "the step that stood still has ended");
}

}  // namespace quire
