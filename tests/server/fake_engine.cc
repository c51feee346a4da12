#include "server/fake_engine.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/byte_alphabet.h"

namespace quire {
namespace {

constexpr int32_t kEndOfText = 256;

constexpr std::string_view kTemplate =
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

class FakeCheckpoint : public Checkpoint {
 public:
  FakeCheckpoint() {
    hparams_.architecture = "fake";
    hparams_.default_temperature = 0.0f;
  }
  std::string_view format() const override { return "safetensors"; }
  const MetaValue* meta(std::string_view) const override { return nullptr; }
  const std::string* document(std::string_view) const override { return nullptr; }
};

std::unique_ptr<Tokenizer> byte_tokenizer() {
  TokenizerSpec spec;
  spec.byte_level = true;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    QUIRE_CHECK(spec.vocabulary.add(bytes_to_stand_ins(std::string_view(&c, 1))).ok());
  }
  int32_t id = kEndOfText;
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    QUIRE_CHECK(spec.vocabulary.add(text).ok());
    spec.added_tokens.push_back({.id = id++, .text = text, .special = true});
  }
  spec.end_of_generation_ids = {kEndOfText};
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(std::move(spec));
  QUIRE_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

// The number after "word=" in `text`; -1: none.
int64_t directive(const std::string& text, const std::string& word) {
  const size_t at = text.find(word + "=");
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + word.size() + 1));
}

TokenLogprob scored(int32_t id, int32_t top) {
  TokenLogprob token;
  token.id = id;
  token.logprob = -0.5f;
  for (int32_t i = 0; i < top; ++i) token.top.push_back({(id + i) % 256, -0.5f - static_cast<float>(i)});
  return token;
}

}  // namespace

FakeEngine::FakeEngine(FakeEngineOptions options)
    : options_(options),
      checkpoint_(std::make_unique<FakeCheckpoint>()),
      tokenizer_(byte_tokenizer()),
      state_(options.state) {
  plan_.request_bytes = options.request_bytes;
  limits_ = {.vocab_size = tokenizer_->vocab_size(),
             .context = options.context,
             .trained_context = options.context,
             .kv_tokens = options.context,
             .max_choices = 128};
  if (options_.has_template) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(kTemplate);
    QUIRE_CHECK(parsed.ok());
    chat_template_ = std::move(*parsed);
  }
  thread_ = std::thread([this] { run(); });
}

FakeEngine::~FakeEngine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Letters only, so that a text is as long as its tokens.
void FakeEngine::plan_answer(Live& live) const {
  const Request& request = live.request;
  uint64_t hash = 1;
  for (const int32_t id : request.prompt) hash = mix(hash, static_cast<uint64_t>(id));
  const std::string prompt = tokenizer_->decode(request.prompt);
  live.hangs = prompt.find("hang") != std::string::npos;
  live.fails_at = directive(prompt, "fail");
  const int64_t room = options_.context - static_cast<int64_t>(request.prompt.size());
  const int64_t length = request.max_tokens < 0 ? room : std::min(room, request.max_tokens);
  const int64_t eos = request.ignore_eos ? -1 : directive(prompt, "eos");
  for (int32_t choice = 0; choice < request.choices; ++choice) {
    std::string text;
    std::string reason = "length";
    std::string stopped_by;
    for (int64_t i = 0; i < length; ++i) {
      if (i == eos) {
        reason = "stop";
        break;
      }
      uint64_t bits = mix(hash, static_cast<uint64_t>(i));
      if (request.sampling.temperature > 0) bits = mix(bits, request.sampling.seed + static_cast<uint64_t>(choice));
      text.push_back(static_cast<char>(bits % 7 == 0 ? ' ' : 'a' + bits % 26));
    }
    size_t cut = std::string::npos;
    for (const std::string& stop : request.stop.texts()) {
      if (const size_t at = text.find(stop); at < cut) {
        cut = at;
        stopped_by = stop;
      }
    }
    if (cut != std::string::npos) {
      text.resize(cut);
      reason = "stop";
    }
    live.texts.push_back(text);
    live.finish_reasons.push_back(reason);
    live.stop_texts.push_back(stopped_by);
  }
  live.finished.resize(static_cast<size_t>(request.choices));
}

Status FakeEngine::submit(Request request, OnEvent on_event) {
  const std::lock_guard lock(mutex_);
  if (live_.size() >= options_.max_requests) return resource_exhausted("the queue is full");
  seen_.push_back(request);
  auto live = std::make_unique<Live>();
  const std::string id = request.id;
  live->request = std::move(request);
  live->on_event = std::move(on_event);
  plan_answer(*live);
  QUIRE_CHECK(live_.emplace(id, std::move(live)).second);
  changed_.notify_all();
  return {};
}

void FakeEngine::cancel(std::string_view request_id) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(request_id);
  if (found == live_.end() || found->second->cancelled) return;
  found->second->cancelled = true;
  ++cancelled_;
  changed_.notify_all();
}

bool FakeEngine::drained() const { return live_requests() == 0; }

size_t FakeEngine::live_requests() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

std::vector<Request> FakeEngine::seen_requests() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

Result<std::string> FakeEngine::trace_json(std::string_view request_id, uint64_t cache_salt) const {
  const std::lock_guard lock(mutex_);
  for (const Request& request : seen_) {
    if (request.id == request_id && request.cache_salt == cache_salt) return "{\"id\":\"" + request.id + "\"}";
  }
  return not_found("no request of that id is remembered");
}

void FakeEngine::run() {
  std::unique_lock lock(mutex_);
  int64_t steps = 0;
  while (!ending_) {
    const bool works = std::any_of(live_.begin(), live_.end(),
                                   [](const auto& entry) { return !entry.second->hangs || entry.second->cancelled; });
    if (!works) {
      changed_.wait(lock);
      continue;
    }
    for (auto it = live_.begin(); it != live_.end();) it = step(*it->second) ? live_.erase(it) : std::next(it);
    if (++steps % options_.steps_at_a_time != 0) continue;
    if (options_.step_time.count() > 0) changed_.wait_for(lock, options_.step_time, [this] { return ending_; });
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

bool FakeEngine::step(Live& live) {
  Event end;
  end.kind = Event::Kind::kFailed;
  if (live.cancelled) {
    end.error = cancelled("cancelled");
  } else if (live.hangs) {
    return false;
  } else if (live.step == live.fails_at) {
    end.error = io_error("the fake engine was told to fail");
  } else {
    for (size_t choice = 0; choice < live.texts.size(); ++choice) {
      if (!live.finished[choice]) emit_token(live, choice);
    }
    live.generated += std::count(live.finished.begin(), live.finished.end(), false);
    ++live.step;
    if (std::count(live.finished.begin(), live.finished.end(), false) > 0) return false;
    end.kind = Event::Kind::kFinished;
  }
  end.timings = {.queued_ms = 1,
                 .prefill_ms = 2,
                 .ttft_ms = 3,
                 .decode_ms = 4,
                 .prompt_tokens = static_cast<int64_t>(live.request.prompt.size()),
                 .cached_tokens = 1};
  for (const std::string& text : live.texts) end.timings.generated_tokens += static_cast<int64_t>(text.size());
  live.on_event(std::move(end));
  return true;
}

void FakeEngine::emit_token(Live& live, size_t choice) const {
  const Request& request = live.request;
  const std::string& text = live.texts[choice];
  const auto position = static_cast<size_t>(live.step);
  if (position >= text.size()) {
    live.finished[choice] = true;
    if (live.finish_reasons[choice] == "stop" && live.stop_texts[choice].empty()) {
      Event eos;
      eos.choice = static_cast<int32_t>(choice);
      eos.ids = {kEndOfText};
      eos.ends_generation = true;
      if (request.logprobs >= 0) eos.logprobs = {scored(kEndOfText, request.logprobs)};
      live.on_event(std::move(eos));
    }
    Event end;
    end.kind = Event::Kind::kChoiceFinished;
    end.choice = static_cast<int32_t>(choice);
    end.finish_reason = live.finish_reasons[choice];
    end.stop_text = live.stop_texts[choice];
    return live.on_event(std::move(end));
  }
  Event delta;
  delta.choice = static_cast<int32_t>(choice);
  delta.text = text.substr(position, 1);
  delta.ids = {static_cast<int32_t>(static_cast<unsigned char>(text[position]))};
  if (request.logprobs >= 0) delta.logprobs = {scored(delta.ids.front(), request.logprobs)};
  if (position == 0 && choice == 0 && request.prompt_logprobs) {
    for (size_t i = 1; i < request.prompt.size(); ++i) {
      delta.prompt_logprobs.push_back(scored(request.prompt[i], request.logprobs));
    }
  }
  live.on_event(std::move(delta));
}

}  // namespace quire
