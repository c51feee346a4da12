#include "server/reply.h"

#include "http/sse.h"

namespace quire {
namespace {

constexpr int kClientLeft = 499;  // in logs and counters only

}  // namespace

std::string RequestCounters::metrics_text() const {
  std::string text =
      "# HELP quire_http_requests_total Requests answered, by route and status (499: the client left).\n"
      "# TYPE quire_http_requests_total counter\n";
  for (const auto& [key, count] : counts_) {
    text += "quire_http_requests_total{route=\"" + key.first + "\",status=\"" + std::to_string(key.second) + "\"} " +
            std::to_string(count) + "\n";
  }
  return text;
}

Reply::Reply(std::shared_ptr<HttpExchange> exchange, std::string route, RequestRecord record, HeaderList headers,
             RequestLog& log, RequestCounters& counters)
    : exchange_(std::move(exchange)),
      route_(std::move(route)),
      record_(std::move(record)),
      headers_(std::move(headers)),
      log_(log),
      counters_(counters) {}

void Reply::respond(HttpResponse response) {
  response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
  const int status = response.status;
  exchange_->respond(std::move(response));
  finish(status);
}

void Reply::fail(const ApiError& error) {
  record_.error_code = error.code.empty() ? "error" : error.code;
  if (!exchange_->head_sent()) return respond(error_response(error));
  std::string event;
  append_sse(error_json(error), &event);
  exchange_->send(event);
  exchange_->end_events();
  finish(error.status);
}

void Reply::begin_events() {
  HttpResponse head{.content_type = "text/event-stream; charset=utf-8", .headers = headers_};
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx must not hold events back
  exchange_->begin_events(std::move(head));
}

void Reply::end_events() {
  exchange_->end_events();
  finish(200);
}

void Reply::on_gone(std::function<void()> callback) {
  exchange_->on_gone([weak = weak_from_this(), callback = std::move(callback)] {
    if (const auto self = weak.lock()) self->finish(kClientLeft);
    callback();
  });
}

void Reply::finish(int status) {
  if (finished_) return;
  finished_ = true;
  record_.status = status;
  record_.duration_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began_).count();
  log_.write(record_);
  counters_.count(route_, status);
}

}  // namespace quire
