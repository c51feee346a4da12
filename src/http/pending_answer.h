// The connection's side of an exchange: collects what the API answers, hands it out in the form it has on the wire.
// I/O thread only, but for gone(). Knows no socket; the connection takes output whenever `wake` told it to look.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "http/http_server.h"

namespace quire {

struct AnswerForm {
  bool chunked = true;     // false: a client of HTTP/1.0, whose streams end with the connection
  bool head_only = false;  // the request was HEAD
  bool keep_alive = true;
};

class PendingAnswer : public HttpExchange {
 public:
  // What is not sent yet counts against `budget` (null: against none).
  PendingAnswer(HttpRequest request, AnswerForm form, size_t unsent_limit, ByteBudget* budget,
                std::function<void()> wake)
      : request_(std::move(request)),
        form_(form),
        unsent_limit_(unsent_limit),
        wake_(std::move(wake)),
        unsent_held_(budget),
        sending_held_(budget) {}

  HttpRequest& request() override { return request_; }
  void respond(HttpResponse response) override;
  void begin_events(HttpResponse head) override;
  void send(std::string_view event) override;
  void end_events() override;
  bool head_sent() const override { return head_sent_; }
  bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  void on_gone(std::function<void()> callback) override { on_gone_ = std::move(callback); }

  bool has_output() const;
  std::string take_output();
  bool ended() const { return ended_; }  // nothing more will be added
  bool complete() const { return ended_ && !has_output(); }
  bool overflowed() const { return overflowed_; }
  bool keep_alive() const { return form_.keep_alive && (mode_ != Mode::kEvents || form_.chunked); }
  bool streaming() const { return mode_ == Mode::kEvents; }
  void close_after() { form_.keep_alive = false; }  // takes effect while the head is not sent
  void release_head();                              // of a stream that has had no event yet

  // The client left. Calls on_gone unless the answer had ended; afterwards everything is dropped.
  void client_left();

 private:
  enum class Mode { kNone, kWhole, kEvents };

  void wake() const {
    if (!gone_ && wake_) wake_();
  }

  HttpRequest request_;
  AnswerForm form_;
  size_t unsent_limit_;
  std::function<void()> wake_;
  std::function<void()> on_gone_;

  Mode mode_ = Mode::kNone;
  HttpResponse response_;
  std::string unsent_;     // events
  ByteHold unsent_held_;   // of `unsent_`, and of an answer that is sent whole
  ByteHold sending_held_;  // of what was taken last
  bool head_due_ = false;
  bool head_sent_ = false;
  bool ended_ = false;
  bool tail_sent_ = false;  // the last chunk, or nothing where none is needed
  std::atomic<bool> gone_{false};
  bool overflowed_ = false;
};

}  // namespace quire
