// How handlers answer a request: adds what every answer carries, and logs and counts it once. I/O thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/http_server.h"
#include "server/api_error.h"
#include "server/request_log.h"

namespace quire {

// Requests answered, by route and status. I/O thread only.
class RequestCounters {
 public:
  void count(const std::string& route, int status) { ++counts_[{route, status}]; }
  std::string metrics_text() const;  // Prometheus' text format

 private:
  std::map<std::pair<std::string, int>, uint64_t> counts_;
};

using HeaderList = std::vector<std::pair<std::string, std::string>>;

class Reply : public std::enable_shared_from_this<Reply> {
 public:
  Reply(std::shared_ptr<HttpExchange> exchange, std::string route, RequestRecord record, HeaderList headers,
        RequestLog& log, RequestCounters& counters);

  HttpRequest& request() { return exchange_->request(); }
  RequestRecord& record() { return record_; }
  bool gone() const { return exchange_->gone(); }
  void add_header(std::string name, std::string value) { headers_.emplace_back(std::move(name), std::move(value)); }

  void respond(HttpResponse response);
  void respond_json(std::string json) { respond({.body = std::move(json)}); }
  // An error answer or, in a stream that has begun, an error event and the end.
  void fail(const ApiError& error);

  void begin_events();
  void send(std::string_view events) { exchange_->send(events); }
  void end_events();

  // `callback` is called when the client leaves before the end.
  void on_gone(std::function<void()> callback);

  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

 private:
  void finish(int status);

  std::shared_ptr<HttpExchange> exchange_;
  std::string route_;
  RequestRecord record_;
  HeaderList headers_;
  RequestLog& log_;
  RequestCounters& counters_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool finished_ = false;
};

}  // namespace quire
