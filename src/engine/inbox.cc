#include "engine/inbox.h"

#include <chrono>
#include <utility>

#include "sched/sequence.h"

namespace quire {

QueueUse Inbox::waiting_locked() const {
  QueueUse all = mailed_;
  all += taken_;
  all += scheduled_;
  return all;
}

QueueUse Inbox::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_locked();
}

Status Inbox::submit(Submission submission) {
  {
    const std::lock_guard lock(mutex_);
    const auto prompt = static_cast<int64_t>(submission.request.prompt.size());
    QUIRE_RETURN_IF_ERROR(limits_.admit(waiting_locked(), prompt));
    mailed_ += {.requests = 1, .tokens = prompt};
    mail_.submissions.push_back(std::move(submission));
  }
  wake_.notify_one();
  return {};
}

void Inbox::cancel(std::string_view request_id) {
  {
    const std::lock_guard lock(mutex_);
    mail_.cancellations.emplace_back(request_id);
  }
  wake_.notify_one();
}

void Inbox::stop() {
  {
    const std::lock_guard lock(mutex_);
    mail_.stop = true;
  }
  wake_.notify_one();
}

Inbox::Mail Inbox::take() {
  const std::lock_guard lock(mutex_);
  taken_ += std::exchange(mailed_, {});
  Mail mail = std::exchange(mail_, {});
  mail_.stop = mail.stop;  // for good
  return mail;
}

void Inbox::published(const QueueUse& scheduled) {
  const std::lock_guard lock(mutex_);
  taken_ = {};
  scheduled_ = scheduled;
}

void Inbox::wait(int64_t until_ns) {
  std::unique_lock lock(mutex_);
  const auto has_mail = [this] { return mail_.stop || !mail_.submissions.empty() || !mail_.cancellations.empty(); };
  if (until_ns == kNever) {
    wake_.wait(lock, has_mail);
  } else {
    wake_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)), has_mail);
  }
}

}  // namespace quire
