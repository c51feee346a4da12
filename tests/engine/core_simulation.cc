#include "engine/core_simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "engine/hash_chain_executor.h"
#include "scheduler/simulation_tools.h"

namespace quire {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kMostSteps = 20'000;
struct Expected {
  std::vector<int32_t> ids;  // as far as they are heard
  std::string text;
  std::string finish_reason;
};

// What one submitted request has heard.
struct Client {
  Request request;
  SequenceId first_id = 0;
  int64_t submitted_ns = 0;
  std::vector<Expected> expected;  // by choice
  struct Choice {
    std::vector<int32_t> ids;
    std::string text;
    std::string finish_reason;
  };
  std::vector<Choice> choices;
  std::vector<float> prompt_logprobs;
  bool ended = false;
  bool cancelled = false;  // asked for, at a time when it was live
  bool mute = false;       // nothing but the end may come
  bool step_failed = false;
};

class CoreSimulation {
 public:
  CoreSimulation(uint64_t seed, CoreTotals& totals, const CoreFault& fault)
      : random_(seed), totals_(totals), fault_(fault), tokenizer_(letter_tokenizer()) {
    draw_configuration();
    draw_requests();
    executor_ = std::make_unique<HashChainExecutor>(cache_);
    executor_->salt_of = [this](SequenceId id) {
      uint64_t salt = 0;
      guarded([&] { salt = client_of(id).request.cache_salt; });
      return salt;
    };
    executor_->during_run = [this](const StepPlan& plan) {
      bool runs = true;
      guarded([&] { runs = in_step(plan); });
      return runs;
    };
    auto scheduler = Scheduler::create(config_, cache_);
    require(scheduler.ok(), "create: " + scheduler.status().message());
    limits_ = RequestLimits::of(**scheduler, kVocabulary, cache_.max_sequence_tokens, 0);
    core_ = std::make_unique<EngineCore>(std::move(*scheduler), *executor_, *tokenizer_, limits_, observer_);
    if (draft_size_ > 0) {
      core_->set_drafter([this](const Request& request, int32_t choice, std::span<const int32_t> tokens) {
        std::vector<int32_t> guess;
        guarded([&] { guess = draft(request, choice, tokens); });
        return guess;
      });
    }
  }
  ~CoreSimulation() { core_->cancel_all(cancelled("the simulation failed"), now_ns_); }

  void run() {
    int64_t turns = 0;
    while (!arrivals_.empty() || core_->live_requests() > 0) {
      require(++turns < kMostSteps, "does not come to an end");
      now_ns_ += random_.between(0, 20) * kMillisecond;
      while (!arrivals_.empty() && random_.chance(arrival_rate_)) submit();
      if (random_.chance(cancel_rate_)) cancel(random_.between(0, 100));
      if (due(CoreFault::Kind::kCancelBetween)) cancel(fault_.victim);
      step();
    }
    leave_nothing();
    add_totals();
  }

 private:
  // Nothing may be thrown through the core: what its callbacks find is kept until it returns.
  template <typename Body>
  void guarded(const Body& body) {
    try {
      body();
    } catch (const Failure& failure) {
      if (failure_.empty()) failure_ = failure.what();
    }
  }
  void rethrow() const { require(failure_.empty(), failure_); }

  void draw_configuration() {
    cache_.page_tokens = random_.pick<int64_t>({1, 4, 16});
    cache_.max_sequence_tokens = random_.between(20, 90);
    cache_.hash_key = {static_cast<uint64_t>(random_.between(0, 1 << 30)), 1};
    cache_.fingerprint = "fake";
    cache_.layout = random_.chance(0.08) ? KvLayout::kContiguous : KvLayout::kPaged;
    cache_.prefix_caching = cache_.layout == KvLayout::kPaged && random_.chance(0.85);
    const int64_t pages = (cache_.max_sequence_tokens + cache_.page_tokens - 1) / cache_.page_tokens;
    cache_.groups.push_back({random_.chance(0.4) ? pages : pages + random_.between(0, 3 * pages), 0, 2});
    if (random_.chance(0.3)) cache_.groups.push_back({pages + random_.between(0, pages), random_.between(1, 40), 1});
    config_.max_seqs = random_.between(1, 8);
    config_.max_step_rows = config_.max_seqs + random_.pick<int64_t>({0, 1, 5, 20, 60});
    config_.queue.max_requests = random_.chance(0.2) ? 2 : 100;
    config_.queue.max_tokens = random_.chance(0.1) ? 60 : 100'000;
    config_.policy.kind = random_.pick({PolicyKind::kStatic, PolicyKind::kStaticPadded, PolicyKind::kDynamic,
                                        PolicyKind::kContinuous, PolicyKind::kMixed, PolicyKind::kMixed});
    config_.policy.batch_size = random_.between(1, config_.max_seqs);
    config_.policy.max_delay_ns = random_.pick<int64_t>({0, 5 * kMillisecond, 500 * kMillisecond});
    config_.project_peak = random_.chance(0.5);
    arrival_rate_ = random_.pick({0.2, 0.5, 0.9});
    cancel_rate_ = random_.pick({0.0, 0.0, 0.02, 0.1});
    failure_rate_ = random_.pick({0.0, 0.0, 0.0, 0.03});
    draft_size_ = random_.pick<int64_t>({0, 1, 3, 5});
  }

  void draw_requests() {
    std::vector<std::vector<int32_t>> prefixes(3);
    for (auto& prefix : prefixes) prefix = draw_tokens(random_.between(1, 60));
    const int64_t count = random_.between(1, 12);
    for (int64_t i = 0; i < count; ++i) {
      Request request;
      request.id = std::to_string(i);
      const auto& prefix = prefixes[static_cast<size_t>(random_.between(0, 2))];
      request.prompt.assign(prefix.begin(), prefix.begin() + random_.between(1, static_cast<int64_t>(prefix.size())));
      for (const int32_t token : draw_tokens(random_.between(0, 8))) request.prompt.push_back(token);
      request.max_tokens = random_.chance(0.05) ? 0 : random_.chance(0.1) ? -1 : random_.between(1, 40);
      request.choices = random_.chance(0.25) ? static_cast<int32_t>(random_.between(1, 4)) : 1;
      request.priority = static_cast<int32_t>(random_.between(-1, 1));
      request.cache_salt = random_.pick<uint64_t>({0, 0, 99});
      request.prompt_logprobs = random_.chance(0.1);
      request.logprobs = random_.chance(0.2) ? 2 : -1;
      request.ignore_eos = random_.chance(0.2);
      if (random_.chance(0.2)) request.stop_token_ids = {5};
      request.deadline_ms = random_.chance(0.1) ? random_.between(1, 400) : 0;
      request.max_queue_ms = random_.chance(0.1) ? random_.between(1, 200) : 0;
      SamplingParams& sampling = request.sampling;
      sampling.temperature = random_.chance(0.3) ? 0.0f : 1.0f;
      sampling.top_k = random_.chance(0.2) ? 3 : 0;
      sampling.frequency_penalty = random_.chance(0.2) ? 0.7f : 0.0f;
      sampling.seed = static_cast<uint64_t>(random_.between(0, 4));
      if (random_.chance(0.2)) {
        sampling.min_tokens = random_.between(1, 6);
      } else if (random_.chance(0.3)) {
        request.stop = *StopTexts::create({random_.pick<const char*>({"ab", "c", "dd", "zaz"})});
      }
      arrivals_.push_back(std::move(request));
    }
  }

  std::vector<int32_t> draw_tokens(int64_t count) {
    std::vector<int32_t> tokens;
    while (static_cast<int64_t>(tokens.size()) < count)
      tokens.push_back(static_cast<int32_t>(random_.between(0, kVocabulary - 1)));
    return tokens;
  }

  Expected expect(const Request& request, int32_t choice) const {
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    const int64_t room = limits_.answer_room(prompt);
    const std::vector<int32_t> tokens =
        choice_alone(cache_.groups, request, choice, request.max_tokens < 0 ? room : request.max_tokens);
    Expected expected;
    expected.finish_reason = "length";
    for (const int32_t token : tokens) {
      expected.ids.push_back(token);
      const bool ends = (token == kEndToken && !request.ignore_eos) ||
                        std::ranges::find(request.stop_token_ids, token) != request.stop_token_ids.end();
      if (!ends) expected.text += kLetters[static_cast<size_t>(token)];
      const size_t cut = request.stop.empty() ? std::string::npos : expected.text.find(request.stop.texts().front());
      if (cut != std::string::npos) expected.text.resize(cut);
      if (ends || cut != std::string::npos) {
        expected.finish_reason = "stop";
        break;
      }
    }
    return expected;
  }

  // --- what clients do ----------------------------------------------------------------------------------------

  void submit() {
    const Request request = std::move(arrivals_.back());
    arrivals_.pop_back();
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    const bool fits = prompt + std::max<int64_t>(request.max_tokens, request.max_tokens < 0) <= limits_.context &&
                      request.choices <= config_.max_seqs;
    auto client = std::make_unique<Client>();
    Client& added = *client;
    added.request = request;
    added.first_id = next_id_;
    added.submitted_ns = now_ns_;
    added.choices.resize(static_cast<size_t>(request.choices));
    clients_[request.id] = std::move(client);
    const Status status = core_->submit(
        request, [this, &added](Event event) { guarded([&] { hear(added, event); }); }, now_ns_);
    rethrow();
    if (!status.ok()) {
      ++totals_.refused;
      require(!added.ended, "a refused request heard something");
      require(fits == (status.code() == StatusCode::kResourceExhausted), "refused wrongly: " + status.message());
      clients_.erase(request.id);
      if (fits) arrivals_.insert(arrivals_.begin(), request);  // comes again
      return;
    }
    require(fits, "taken though it cannot fit");
    for (int32_t j = 0; j < request.choices; ++j) added.expected.push_back(expect(request, j));
    next_id_ += request.choices;
  }

  Client* live_client(int64_t victim) {
    std::vector<Client*> live;
    for (const auto& [id, client] : clients_) {
      if (!client->ended) live.push_back(client.get());
    }
    return live.empty() ? nullptr : live[static_cast<size_t>(victim) % live.size()];
  }

  // Between steps it ends at once.
  void cancel(int64_t victim) {
    Client* client = live_client(victim);
    if (client == nullptr) return;
    client->cancelled = client->mute = true;
    core_->cancel(client->request.id, cancelled("by the client"), now_ns_);
    rethrow();
    require(client->ended, "a cancelled request lives on");
    core_->cancel(client->request.id, cancelled("again"), now_ns_);
  }

  Client& client_of(SequenceId id) {
    for (const auto& [name, client] : clients_) {
      if (id >= client->first_id && id < client->first_id + client->request.choices) return *client;
    }
    throw Failure("a sequence that nobody asked for");
  }

  // What happens while a step is computed. False: it fails.
  bool in_step(const StepPlan& plan) {
    if (plan.rows.empty()) return true;
    if (random_.chance(cancel_rate_)) cancel_in_step(random_.between(0, 100), plan);
    if (due(CoreFault::Kind::kCancelInStep)) cancel_in_step(fault_.victim, plan);
    const bool fails = random_.chance(failure_rate_) || due(CoreFault::Kind::kFailStep);
    for (const PlanRow& row : plan.rows) {
      if (fails && !row.padding) client_of(row.id).step_failed = true;
    }
    return !fails;
  }

  void cancel_in_step(int64_t victim, const StepPlan& plan) {
    Client* client = live_client(victim);
    if (client == nullptr) return;
    client->cancelled = client->mute = true;
    doomed_.insert(client->request.id);
    const bool computed = std::ranges::any_of(
        plan.rows, [&](const PlanRow& row) { return !row.padding && &client_of(row.id) == client; });
    totals_.cancelled_in_step += computed;
    core_->cancel(client->request.id, cancelled("by the client"), now_ns_);
  }

  // --- what they hear -----------------------------------------------------------------------------------------

  void hear(Client& client, const Event& event) {
    require(!client.ended, "an event after the terminal one");
    if (event.kind == Event::Kind::kFinished || event.kind == Event::Kind::kFailed) {
      client.ended = true;
      event.kind == Event::Kind::kFinished ? check_finished(client) : check_failed(client, event.error);
      return;
    }
    require(!client.mute, "an event after the request was cancelled");
    Client::Choice& choice = client.choices.at(static_cast<size_t>(event.choice));
    require(choice.finish_reason.empty(), "an event after the choice was finished");
    choice.ids.insert(choice.ids.end(), event.ids.begin(), event.ids.end());
    choice.text += event.text;
    require(event.logprobs.size() == (client.request.logprobs >= 0 ? event.ids.size() : 0),
            "log-probabilities miscounted");
    for (const TokenLogprob& token : event.prompt_logprobs) client.prompt_logprobs.push_back(token.logprob);
    if (event.kind == Event::Kind::kChoiceFinished) {
      choice.finish_reason = event.finish_reason;
      totals_.stop_strings += !event.stop_text.empty();
    }
    if (due(CoreFault::Kind::kCancelFromEvent) || random_.chance(cancel_rate_ / 4)) cancel_from_event();
  }

  // Takes effect at the latest when the step ends; a request that ends in the same step may be quicker.
  void cancel_from_event() {
    Client* client = live_client(due(CoreFault::Kind::kCancelFromEvent) ? fault_.victim : random_.between(0, 100));
    if (client == nullptr) return;
    client->cancelled = true;
    doomed_.insert(client->request.id);
    core_->cancel(client->request.id, cancelled("by a listener"), now_ns_);
  }

  void check_finished(const Client& client) {
    ++totals_.finished;
    totals_.forks += client.request.choices - 1;
    for (size_t j = 0; j < client.choices.size(); ++j) {
      const Client::Choice& heard = client.choices[j];
      require(heard.ids == client.expected[j].ids, "the tokens differ from those of the request alone");
      require(heard.text == client.expected[j].text, "the text differs from that of the request alone");
      require(heard.finish_reason == client.expected[j].finish_reason, "ended for the wrong reason");
    }
    if (client.request.prompt_logprobs) check_prompt_logprobs(client);
  }

  void check_prompt_logprobs(const Client& client) {
    const std::vector<int32_t>& prompt = client.request.prompt;
    const std::vector<uint64_t> states = reference_states(cache_.groups, prompt, client.request.cache_salt);
    require(client.prompt_logprobs.size() == prompt.size() - 1, "prompt log-probabilities miscounted");
    for (size_t i = 0; i + 1 < prompt.size(); ++i) {
      const std::vector<float> logits = hash_logits(states[i]);
      double sum = 0;
      for (const float value : logits) sum += std::exp(static_cast<double>(value));
      const double wanted = static_cast<double>(logits[static_cast<size_t>(prompt[i + 1])]) - std::log(sum);
      require(std::abs(static_cast<double>(client.prompt_logprobs[i]) - wanted) < 1e-4,
              "a prompt token's score is wrong");
    }
    ++totals_.prompt_scores;
  }

  void check_failed(const Client& client, const Status& error) {
    const Request& request = client.request;
    switch (error.code()) {
      case StatusCode::kCancelled:
        require(client.cancelled, "cancelled without being asked");
        ++totals_.cancelled;
        break;
      case StatusCode::kDeadlineExceeded:
        require(request.deadline_ms > 0 && step_start_ns_ >= deadline_ns(client), "its deadline had not passed");
        ++totals_.late;
        break;
      case StatusCode::kResourceExhausted:
        require(request.max_queue_ms > 0 && step_start_ns_ >= queue_deadline_ns(client), "it had not waited so long");
        ++totals_.late;
        break;
      default:
        require(error.code() == StatusCode::kIo && client.step_failed, "failed by a step that it was not in");
        ++totals_.failed;
    }
    for (size_t j = 0; j < client.choices.size(); ++j) {
      const std::vector<int32_t>& heard = client.choices[j].ids;
      const std::vector<int32_t>& whole = client.expected[j].ids;
      require(heard.size() <= whole.size() && std::equal(heard.begin(), heard.end(), whole.begin()),
              "what was heard of a request that was cut off is no beginning of its answer");
    }
  }

  static int64_t deadline_ns(const Client& c) {
    return c.request.deadline_ms > 0 ? c.submitted_ns + c.request.deadline_ms * kMillisecond : kNever;
  }
  static int64_t queue_deadline_ns(const Client& c) {
    return c.request.max_queue_ms > 0 ? c.submitted_ns + c.request.max_queue_ms * kMillisecond : kNever;
  }

  // --- steps --------------------------------------------------------------------------------------------------

  bool due(CoreFault::Kind kind) const { return fault_.kind == kind && fault_.step == steps_; }

  void step() {
    step_start_ns_ = now_ns_;
    bool first = true;
    const auto clock = [&] {
      if (!std::exchange(first, false)) now_ns_ += random_.chance(0.05) ? 300 * kMillisecond : kMillisecond;
      return now_ns_;
    };
    doomed_.clear();
    const bool worked = core_->step(clock);
    rethrow();
    steps_ += worked;
    totals_.steps += worked;
    const Status status = core_->scheduler().check_invariants();
    require(status.ok(), "invariant: " + status.message());
    executor_->model().spoil_unused(core_->scheduler().cache());
    for (const auto& [id, client] : clients_) {
      const bool should_have_ended =
          deadline_ns(*client) <= step_start_ns_ || client->step_failed || doomed_.contains(id);
      require(client->ended || !should_have_ended, "a request outlived its deadline, its cancel or a failed step");
    }
    if (worked) return;
    if (core_->live_requests() == 0) return;
    require(core_->wake_at_ns() != kNever, "stands still with requests waiting");
    for (const auto& [id, client] : clients_)
      require(client->ended || core_->wake_at_ns() <= deadline_ns(*client), "would sleep through a deadline");
    if (arrivals_.empty()) now_ns_ = std::max(now_ns_, core_->wake_at_ns());
  }

  std::vector<int32_t> draft(const Request& request, int32_t choice, std::span<const int32_t> tokens) {
    const Client& client = *clients_.at(request.id);
    const std::vector<int32_t>& whole = client.expected[static_cast<size_t>(choice)].ids;
    const size_t done = tokens.size() - request.prompt.size();
    require(std::equal(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt.size()),
                       request.prompt.begin()),
            "drafts are asked for another text");
    std::vector<int32_t> guess;
    for (size_t i = done; static_cast<int64_t>(guess.size()) < draft_size_; ++i) {
      const bool right = i < whole.size() && random_.chance(0.7);
      guess.push_back(right ? whole[i] : static_cast<int32_t>(random_.between(0, kVocabulary - 1)));
    }
    return guess;
  }

  void leave_nothing() {
    for (const auto& [id, client] : clients_) require(client->ended, "a request never ended");
    require(core_->scheduler().gauges().running + core_->scheduler().gauges().waiting == 0, "sequences are left over");
    for (int64_t g = 0; g < core_->scheduler().cache().groups(); ++g)
      require(core_->scheduler().kv_usage(g).used_slots == 0, "pages are left over");
    // Whoever samples hears of ended sequences with the next step.
    failure_rate_ = cancel_rate_ = 0;
    fault_ = {};
    Request last;
    last.id = "last";
    last.prompt = {1};
    last.max_tokens = 1;
    arrivals_.push_back(last);
    submit();
    while (core_->live_requests() > 0) step();
    require(executor_->sampled_sequences() <= 1, "samplers are left over");
  }

  void add_totals() {
    ++totals_.runs;
    const SchedulerCounters& counters = core_->scheduler().counters();
    totals_.preemptions += counters.preemptions;
    totals_.drafted += counters.drafted_tokens;
    totals_.accepted += counters.accepted_tokens;
  }

  Random random_;
  CoreTotals& totals_;
  CoreFault fault_;
  std::unique_ptr<Tokenizer> tokenizer_;
  EngineObserver observer_;
  KvCacheConfig cache_;
  SchedulerConfig config_;
  RequestLimits limits_;
  double arrival_rate_ = 0;
  double cancel_rate_ = 0;
  double failure_rate_ = 0;
  int64_t draft_size_ = 0;
  int64_t now_ns_ = 1;
  int64_t step_start_ns_ = 0;
  int64_t steps_ = 0;
  SequenceId next_id_ = 1;  // as the scheduler counts
  std::vector<Request> arrivals_;
  std::map<std::string, std::unique_ptr<Client>> clients_;
  std::set<std::string> doomed_;  // to end with this step
  std::string failure_;
  std::unique_ptr<HashChainExecutor> executor_;
  std::unique_ptr<EngineCore> core_;
};

}  // namespace

std::string simulate_core(uint64_t seed, CoreTotals& totals, const CoreFault& fault) {
  try {
    CoreSimulation(seed, totals, fault).run();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace quire
