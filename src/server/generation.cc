#include "server/generation.h"

#include <algorithm>
#include <new>
#include <utility>

#include "http/sse.h"

namespace quire {
namespace {

const ApiError& error_of_departed_client() {
  static const ApiError kError{.status = 499, .message = "the client left", .code = "client_left"};
  return kError;
}

const ApiError& error_of_no_memory() {
  static const ApiError kError{.status = 503,
                               .message = "there is no memory for so much at the moment; try again later",
                               .code = "overloaded",
                               .retry_after_s = 1};
  return kError;
}

// A prompt is kept as ids here, in the request and in the scheduler.
constexpr int64_t kPromptCopies = 3;

}  // namespace

Generation::Generation(Engine& engine, ByteBudget& budget, std::shared_ptr<Reply> reply, GenerationCall call,
                       AnswerIdentity identity)
    : engine_(engine),
      reply_(std::move(reply)),
      call_(std::move(call)),
      id_(identity.id),
      builder_(std::move(identity)),
      held_(&budget) {
  call_.messages = {};  // rendered by now
  call_.template_kwargs = {};
  if (!call_.echo) call_.prompts = {};
  if (call_.include_usage) builder_.announce_usage();
}

std::string Generation::request_id(size_t part, size_t parts) const {
  return parts == 1 ? id_ : id_ + "-" + std::to_string(part);
}

bool Generation::submit(std::vector<std::vector<int32_t>> prompts, uint64_t number,
                        const std::shared_ptr<EventMailbox>& mailbox) {
  int64_t bytes = 0;
  for (const std::vector<int32_t>& prompt : prompts) {
    bytes += kPromptCopies * static_cast<int64_t>(prompt.size() * sizeof(int32_t));
  }
  for (const PromptInput& input : call_.prompts) {
    if (const auto* text = std::get_if<std::string>(&input)) bytes += 2 * static_cast<int64_t>(text->size());
  }
  if (!held_.grow(bytes)) {
    abort(error_of_no_memory());
    return false;
  }
  parts_.resize(prompts.size());
  choices_.resize(prompts.size() * static_cast<size_t>(call_.request.choices));
  if (call_.api == Api::kCompletions && call_.request.logprobs >= 0) {
    for (ChoiceState& state : choices_) {
      state.completion_logprobs = std::make_unique<CompletionLogprobs>(engine_.tokenizer(), call_.request.logprobs);
    }
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    Part& part = parts_[i];
    part.request_id = request_id(i, prompts.size());
    part.prompt_tokens = static_cast<int64_t>(prompts[i].size());
    if (call_.echo) {
      const std::string* text = std::get_if<std::string>(&call_.prompts[i]);
      part.prompt_text = text != nullptr ? *text : engine_.tokenizer().decode(prompts[i], true);
      part.prompt = prompts[i];
    }
    Request request = call_.request;
    request.id = part.request_id;
    request.prompt = std::move(prompts[i]);
    const Status status = engine_.submit(std::move(request), [mailbox, number, i](Event event) {
      mailbox->put({number, i, std::move(event)});
    });
    if (!status.ok()) {
      ApiError error = api_error_of(status);
      if (error.status == 429) error.retry_after_s = engine_.retry_after_s();
      abort(error);
      return false;
    }
    part.running = true;
    ++running_parts_;
  }
  reply_->on_gone([this] { abort(error_of_departed_client()); });
  if (call_.stream) reply_->begin_events();
  return true;
}

void Generation::cancel_running() {
  for (const Part& part : parts_) {
    if (part.running) engine_.cancel(part.request_id);
  }
}

void Generation::abort(const ApiError& error) {
  if (!answered_) {
    answered_ = true;
    if (!reply_->gone()) reply_->fail(error);
  }
  cancel_running();
}

void Generation::run_out_of_memory() { abort(error_of_no_memory()); }

void Generation::on_event(size_t part, Event event) {
  switch (event.kind) {
    case Event::Kind::kDelta:
      if (!answered_) on_delta(part, event);
      return;
    case Event::Kind::kChoiceFinished:
      if (!answered_) on_choice_finished(part, event);
      return;
    case Event::Kind::kFinished:
    case Event::Kind::kFailed:
      on_terminal(part, event);
      return;
  }
}

void Generation::on_delta(size_t part, Event& event) {
  const int32_t index = choice_index(part, event.choice);
  ChoiceState& state = choices_[static_cast<size_t>(index)];
  sse_.clear();
  // What ends the answer is no part of its text. Lists of completions hold it all the same, as those of others do: who asks
  // for one token to have a prompt scored leaves out the last, whatever it is.
  if (event.ends_generation && !event.logprobs.empty() && call_.api == Api::kChat) event.logprobs.pop_back();
  if (!state.begun) begin_choice(part, index, state, event);
  if (!call_.prompt_only) {
    state.tokens += static_cast<int64_t>(event.ids.size());
    if (call_.stream) {
      const std::string logprobs = event.logprobs.empty() ? std::string() : delta_logprobs(state, event);
      if (!event.text.empty() || !logprobs.empty()) {
        builder_.append_text(index, event.text, logprobs, running_usage(), &sse_);
      }
    } else {
      if (!held_.grow(event_bytes(event))) return run_out_of_memory();
      state.choice.text += event.text;
      if (call_.api == Api::kChat) {
        std::move(event.logprobs.begin(), event.logprobs.end(), std::back_inserter(state.chat_logprobs));
      } else if (state.completion_logprobs) {
        for (const TokenLogprob& token : event.logprobs) state.completion_logprobs->add(token);
      }
    }
  }
  if (!sse_.empty()) reply_->send(sse_);
}

void Generation::begin_choice(size_t part, int32_t index, ChoiceState& state, Event& event) {
  state.begun = true;
  if (call_.api == Api::kChat) {
    if (call_.stream) builder_.append_role(index, running_usage(), &sse_);
    return;
  }
  if (!call_.echo) return;
  echo_prompt(part, state, event);
  if (!call_.stream) {
    state.choice.text = parts_[part].prompt_text;
    return;
  }
  const std::string logprobs = state.completion_logprobs ? state.completion_logprobs->take_json() : std::string();
  builder_.append_text(index, parts_[part].prompt_text, logprobs, running_usage(), &sse_);
}

// The engine scores the prompt once, with its first choice; the others say the same.
void Generation::echo_prompt(size_t part, ChoiceState& state, Event& event) {
  if (!state.completion_logprobs) return;
  if (event.choice == 0) parts_[part].prompt_logprobs = std::move(event.prompt_logprobs);
  state.completion_logprobs->add_unscored(parts_[part].prompt.front());
  for (const TokenLogprob& token : parts_[part].prompt_logprobs) state.completion_logprobs->add(token);
}

std::string Generation::delta_logprobs(ChoiceState& state, const Event& event) {
  if (call_.api == Api::kChat) return chat_logprobs_json(engine_.tokenizer(), event.logprobs);
  for (const TokenLogprob& token : event.logprobs) state.completion_logprobs->add(token);
  return state.completion_logprobs->take_json();
}

void Generation::on_choice_finished(size_t part, Event& event) {
  const int32_t index = choice_index(part, event.choice);
  ChoiceState& state = choices_[static_cast<size_t>(index)];
  sse_.clear();
  if (!state.begun) begin_choice(part, index, state, event);
  state.choice.finish_reason = call_.prompt_only ? "length" : std::move(event.finish_reason);
  state.choice.stop_text = std::move(event.stop_text);
  if (!call_.stream) return;
  // The last end carries the timings, which come with the terminal event.
  if (last_finished_ >= 0) {
    const ChoiceState& held = choices_[static_cast<size_t>(last_finished_)];
    builder_.append_finish(last_finished_, held.choice, running_usage(), nullptr, &sse_);
  }
  last_finished_ = index;
  if (!sse_.empty()) reply_->send(sse_);
}

void Generation::on_terminal(size_t part, Event& event) {
  parts_[part].running = false;
  parts_[part].timings = event.timings;
  --running_parts_;
  if (answered_) return;
  if (event.kind == Event::Kind::kFailed) {
    ApiError error = api_error_of(event.error);
    if (error.status == 429) error.retry_after_s = engine_.retry_after_s();
    return abort(error);
  }
  if (running_parts_ == 0) finish_answer();
}

Usage Generation::usage() const {
  Usage usage;
  for (const Part& part : parts_) {
    usage.prompt_tokens += part.prompt_tokens;
    usage.cached_tokens += part.timings.cached_tokens;
    if (!call_.prompt_only) usage.completion_tokens += part.timings.generated_tokens;
  }
  return usage;
}

// Null: the stream has none. What is not finished is counted by its deltas.
const Usage* Generation::running_usage() {
  if (!call_.continuous_usage) return nullptr;
  running_usage_ = {};
  for (const Part& part : parts_) running_usage_.prompt_tokens += part.prompt_tokens;
  for (const ChoiceState& state : choices_) running_usage_.completion_tokens += state.tokens;
  return &running_usage_;
}

// Of several prompts: counts are summed, times are the longest.
RequestTimings Generation::timings() const {
  RequestTimings all;
  for (const Part& part : parts_) {
    const RequestTimings& one = part.timings;
    all.prompt_tokens += one.prompt_tokens;
    all.cached_tokens += one.cached_tokens;
    all.generated_tokens += one.generated_tokens;
    all.preemptions += one.preemptions;
    all.queued_ms = std::max(all.queued_ms, one.queued_ms);
    all.prefill_ms = std::max(all.prefill_ms, one.prefill_ms);
    all.ttft_ms = std::max(all.ttft_ms, one.ttft_ms);
    all.decode_ms = std::max(all.decode_ms, one.decode_ms);
  }
  return all;
}

void Generation::finish_answer() {
  answered_ = true;
  const Usage total = usage();
  const RequestTimings times = timings();
  RequestRecord& record = reply_->record();
  record.prompt_tokens = total.prompt_tokens;
  record.cached_tokens = total.cached_tokens;
  record.completion_tokens = total.completion_tokens;
  record.queued_ms = times.queued_ms;
  record.ttft_ms = times.ttft_ms;
  if (call_.stream) {
    sse_.clear();
    if (last_finished_ >= 0) {
      const ChoiceState& held = choices_[static_cast<size_t>(last_finished_)];
      builder_.append_finish(last_finished_, held.choice, running_usage(), call_.include_usage ? nullptr : &times,
                             &sse_);
    }
    if (call_.include_usage) builder_.append_usage(total, times, &sse_);
    sse_.append(kSseDone);
    reply_->send(sse_);
    return reply_->end_events();
  }
  std::vector<Choice> choices;
  for (ChoiceState& state : choices_) {
    if (state.completion_logprobs) {
      state.choice.logprobs = state.completion_logprobs->take_json();
    } else if (call_.request.logprobs >= 0) {
      state.choice.logprobs = chat_logprobs_json(engine_.tokenizer(), state.chat_logprobs);
    }
    choices.push_back(std::move(state.choice));
  }
  reply_->respond_json(builder_.whole(choices, total, times));
}

GenerationTable::GenerationTable(std::function<void(std::function<void()>)> post_to_io_thread, ByteBudget& budget)
    : mailbox_(std::make_shared<EventMailbox>(
          [this, post = std::move(post_to_io_thread)] { post([this] { deliver(); }); }, budget)) {}

void GenerationTable::start(std::unique_ptr<Generation> generation, std::vector<std::vector<int32_t>> prompts) {
  const uint64_t number = next_number_++;
  generation->submit(std::move(prompts), number, mailbox_);
  if (!generation->finished()) generations_.emplace(number, std::move(generation));
}

void GenerationTable::deliver() {
  for (EventMailbox::Item& item : mailbox_->take()) deliver(item);
}

void GenerationTable::deliver(EventMailbox::Item& item) {
  const auto found = generations_.find(item.generation);
  if (found == generations_.end()) return;
  Generation& generation = *found->second;
  item.held.release();  // from here on the generation counts what it keeps
  if (item.lost) return generation.run_out_of_memory();
  try {
    generation.on_event(item.part, std::move(item.event));
  } catch (const std::bad_alloc&) {
    generation.run_out_of_memory();
  }
  if (generation.finished()) generations_.erase(found);
}

void GenerationTable::abort_all(const ApiError& error) {
  for (const auto& [number, generation] : generations_) generation->abort(error);
}

}  // namespace quire
