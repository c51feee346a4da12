#include "http/pending_answer.h"

#include <cstdio>

namespace quire {

void PendingAnswer::respond(HttpResponse response) {
  if (gone_ || head_sent_) return;
  mode_ = Mode::kWhole;
  response_ = std::move(response);
  unsent_.clear();
  unsent_held_.release();
  unsent_held_.force(static_cast<int64_t>(response_.body.size()));  // it is there already
  head_due_ = ended_ = true;
  wake();
}

void PendingAnswer::begin_events(HttpResponse head) {
  mode_ = Mode::kEvents;
  response_ = std::move(head);
}

void PendingAnswer::send(std::string_view event) {
  if (gone_ || ended_) return;
  unsent_.append(event);
  head_due_ = true;
  if (unsent_.size() > unsent_limit_ || !unsent_held_.grow(static_cast<int64_t>(event.size()))) overflowed_ = true;
  wake();
}

void PendingAnswer::end_events() {
  if (gone_ || ended_) return;
  head_due_ = ended_ = true;
  wake();
}

void PendingAnswer::release_head() {
  if (gone_ || mode_ != Mode::kEvents) return;
  head_due_ = true;
  wake();
}

bool PendingAnswer::has_output() const {
  if (mode_ == Mode::kNone) return false;
  if (!head_sent_) return head_due_;
  if (mode_ == Mode::kWhole) return false;
  return !unsent_.empty() || (ended_ && !tail_sent_);
}

std::string PendingAnswer::take_output() {
  std::string out;
  sending_held_.release();
  sending_held_.absorb(std::move(unsent_held_));
  if (!head_sent_) {
    const BodyFraming framing = mode_ == Mode::kWhole ? BodyFraming::kLength
                                : form_.chunked       ? BodyFraming::kChunked
                                                      : BodyFraming::kUntilClose;
    out = head_text(response_, framing, keep_alive());
    head_sent_ = true;
    if (mode_ == Mode::kWhole && !form_.head_only) out += response_.body;
  }
  if (mode_ == Mode::kWhole) return out;
  if (!unsent_.empty()) {
    if (form_.chunked) {
      char size[24];
      out.append(size, static_cast<size_t>(std::snprintf(size, sizeof size, "%zx\r\n", unsent_.size())));
    }
    out += unsent_;
    if (form_.chunked) out += "\r\n";
    unsent_.clear();
  }
  if (ended_ && !tail_sent_) {
    if (form_.chunked) out += "0\r\n\r\n";
    tail_sent_ = true;
  }
  return out;
}

void PendingAnswer::client_left() {
  if (gone_) return;
  gone_ = true;
  wake_ = nullptr;
  unsent_ = {};
  response_ = {};
  unsent_held_.release();
  sending_held_.release();
  const std::function<void()> callback = std::move(on_gone_);
  on_gone_ = nullptr;
  if (callback && !ended_) callback();
}

}  // namespace quire
