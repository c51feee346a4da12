// What other threads tell the engine's: requests and cancellations, in order. Counts what waits in it together with what
// waits in the scheduler, so that a burst between two steps cannot pass the queue's bounds.
//
// Thread: any; take() and published() are the engine thread's. Guards itself with one lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/event.h"
#include "engine/request.h"
#include "sched/queue_limits.h"

namespace quire {

struct Submission {
  Request request;
  std::function<void(Event event)> on_event;
  int64_t submitted_ns = 0;
};

class Inbox {
 public:
  struct Mail {
    std::vector<Submission> submissions;
    std::vector<std::string> cancellations;  // request ids; after the submissions
    bool stop = false;
  };

  explicit Inbox(const QueueLimits& limits) : limits_(limits) {}

  // Fails when the queue is full (QueueLimits::admit).
  Status submit(Submission submission);
  void cancel(std::string_view request_id);
  void stop();

  // What has come since; returns at once.
  Mail take();
  // The scheduler has what take() returned, and so much waits there now.
  void published(const QueueUse& scheduled);
  // Returns when there is mail, or at `until_ns` of the steady clock (kNever: not by time).
  void wait(int64_t until_ns);

  // What waits, here and in the scheduler.
  QueueUse waiting() const;

 private:
  QueueUse waiting_locked() const;

  const QueueLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Mail mail_;
  QueueUse mailed_;     // in mail_
  QueueUse taken_;      // taken, not yet published
  QueueUse scheduled_;  // as last published
};

}  // namespace quire
