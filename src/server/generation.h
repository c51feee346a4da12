// A call of a generation endpoint while it runs: submits its prompts to the engine, turns events into the answer, and
// cancels what is left when the client leaves. I/O thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "server/event_mailbox.h"
#include "server/openai_answer.h"
#include "server/openai_request.h"
#include "server/reply.h"

namespace quire {

class Generation {
 public:
  // What it keeps counts against `budget`.
  Generation(Engine& engine, ByteBudget& budget, std::shared_ptr<Reply> reply, GenerationCall call,
             AnswerIdentity identity);

  // Submits every prompt. False: the engine refused one, the reply has failed, and what was submitted is cancelled;
  // terminal events of those still come. `number` names this generation in the mailbox.
  bool submit(std::vector<std::vector<int32_t>> prompts, uint64_t number, const std::shared_ptr<EventMailbox>& mailbox);

  void on_event(size_t part, Event event);
  // Ends it because there is no memory for what it says.
  void run_out_of_memory();
  // Cancels what runs; the reply fails with `error` unless it has ended.
  void abort(const ApiError& error);
  // Every submitted prompt has had its terminal event.
  bool finished() const { return running_parts_ == 0; }

 private:
  struct Part {  // one prompt
    std::string request_id;
    std::vector<int32_t> prompt;                // kept for echo only
    std::string prompt_text;                    // echo
    std::vector<TokenLogprob> prompt_logprobs;  // echo
    int64_t prompt_tokens = 0;
    bool running = false;
    RequestTimings timings;
  };
  struct ChoiceState {
    Choice choice;
    bool begun = false;  // role or echo is out
    int64_t tokens = 0;
    std::vector<TokenLogprob> chat_logprobs;  // whole answers of chat
    std::unique_ptr<CompletionLogprobs> completion_logprobs;
  };

  void on_delta(size_t part, Event& event);
  void begin_choice(size_t part, int32_t index, ChoiceState& state, Event& event);
  void echo_prompt(size_t part, ChoiceState& state, Event& event);
  std::string delta_logprobs(ChoiceState& state, const Event& event);
  void on_choice_finished(size_t part, Event& event);
  void on_terminal(size_t part, Event& event);
  void finish_answer();
  void cancel_running();
  int32_t choice_index(size_t part, int32_t choice) const {
    return static_cast<int32_t>(part) * call_.request.choices + choice;
  }
  Usage usage() const;
  const Usage* running_usage();
  RequestTimings timings() const;
  std::string request_id(size_t part, size_t parts) const;

  Engine& engine_;
  std::shared_ptr<Reply> reply_;
  GenerationCall call_;
  std::string id_;
  AnswerBuilder builder_;
  std::vector<Part> parts_;
  std::vector<ChoiceState> choices_;
  size_t running_parts_ = 0;
  bool answered_ = false;       // ended, failed or left: later events are only counted
  int32_t last_finished_ = -1;  // choice whose end is held back until the timings are known
  std::string sse_;             // scratch
  ByteHold held_;               // prompts, and an answer that is sent whole
  Usage running_usage_;
};

// All generations that the engine still has to say something about, by number.
class GenerationTable {
 public:
  GenerationTable(std::function<void(std::function<void()>)> post_to_io_thread, ByteBudget& budget);
  ~GenerationTable() { mailbox_->close(); }

  void start(std::unique_ptr<Generation> generation, std::vector<std::vector<int32_t>> prompts);
  void abort_all(const ApiError& error);
  size_t size() const { return generations_.size(); }

  GenerationTable(const GenerationTable&) = delete;
  GenerationTable& operator=(const GenerationTable&) = delete;

 private:
  void deliver();
  void deliver(EventMailbox::Item& item);

  std::shared_ptr<EventMailbox> mailbox_;
  std::unordered_map<uint64_t, std::unique_ptr<Generation>> generations_;
  uint64_t next_number_ = 1;
};

}  // namespace quire
