// The promise of serving: what a request gets does not depend on who else is served, how steps are cut, what the cache
// knows, how often the request was preempted, or how many threads compute. Texts are equal, log-probabilities to the bit.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "support/test_engine.h"

namespace quire {
namespace {

constexpr int64_t kPlentyOfTokens = 16384;
constexpr int kManyRequests = 64;

struct Variation {
  const char* name;
  PolicyKind policy = PolicyKind::kMixed;
  bool prefix_caching = true;
  int64_t kv_tokens = kPlentyOfTokens;
  int threads = 1;
  KvLayout layout = KvLayout::kPaged;
  int64_t max_step_rows = 512;
  bool drafts = false;  // some right, some wrong
};

constexpr Variation kVariations[] = {
    {.name = "mixed"},
    {.name = "mixed, two threads", .threads = 2},
    {.name = "no prefix cache", .prefix_caching = false},
    {.name = "continuous", .policy = PolicyKind::kContinuous},
    {.name = "dynamic", .policy = PolicyKind::kDynamic},
    {.name = "static", .policy = PolicyKind::kStatic},
    {.name = "static, padded", .policy = PolicyKind::kStaticPadded},
    {.name = "small steps", .max_step_rows = 40},
    {.name = "few pages, so preemptions", .kv_tokens = 528, .max_step_rows = 64},
    {.name = "drafts", .drafts = true},
    {.name = "drafts and few pages", .kv_tokens = 528, .threads = 2, .max_step_rows = 64, .drafts = true},
    {.name = "contiguous pages", .prefix_caching = false, .layout = KvLayout::kContiguous},
};

TestEngineOptions engine_options(const std::string& path, const Variation& v, KvType kv, int64_t context) {
  TestEngineOptions options;
  options.path = path;
  options.device.kv = kv;
  options.device.threads = v.threads;
  options.context = context;
  options.kv_tokens = v.kv_tokens;
  options.prefix_caching = v.prefix_caching;
  options.layout = v.layout;
  options.scheduler.policy.kind = v.policy;
  options.scheduler.policy.max_delay_ns = 1'000'000;
  options.scheduler.max_step_rows = v.max_step_rows;
  options.scheduler.project_peak = v.kv_tokens >= kPlentyOfTokens;  // else sequences start that cannot all end
  return options;
}

// Short and long prompts, some sharing a prefix; greedy and at temperature 1.5; stop strings, several choices, echo.
std::vector<Request> mixed_requests(int count, int64_t vocab, std::mt19937_64& random) {
  std::vector<int32_t> common(80);
  for (int32_t& id : common) id = static_cast<int32_t>(random() % static_cast<uint64_t>(vocab));
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.id = "request-" + std::to_string(i);
    if (i % 3 == 0) request.prompt = common;
    const size_t tail = 1 + random() % (i % 5 == 0 ? 150 : 30);
    for (size_t t = 0; t < tail; ++t)
      request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocab)));
    request.max_tokens = static_cast<int64_t>(1 + random() % 32);
    request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.5f;
    request.sampling.seed = random();
    request.logprobs = i % 4 == 1 ? 3 : 0;
    request.choices = i % 7 == 3 ? 3 : 1;
    request.prompt_logprobs = i % 11 == 5;
    request.ignore_eos = i % 2 == 0;
    if (i % 6 == 1) request.sampling.frequency_penalty = 0.5f;
    if (i % 6 == 2) request.stop = *StopTexts::create({"e", "\n"});
    requests.push_back(std::move(request));
  }
  return requests;
}

void expect_equal(const Heard& got, const Heard& want, const std::string& what) {
  ASSERT_EQ(got.terminal_events, 1) << what;
  ASSERT_TRUE(got.error.ok()) << what << ": " << got.error.message();
  ASSERT_EQ(got.choices.size(), want.choices.size());
  const auto same_bits = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  for (size_t j = 0; j < got.choices.size(); ++j) {
    EXPECT_EQ(got.choices[j].ids, want.choices[j].ids) << what << " choice " << j;
    EXPECT_EQ(got.choices[j].text, want.choices[j].text) << what << " choice " << j;
    EXPECT_EQ(got.choices[j].finish_reason, want.choices[j].finish_reason) << what << " choice " << j;
    EXPECT_TRUE(same_bits(got.choices[j].logprobs, want.choices[j].logprobs)) << what << " choice " << j;
  }
  EXPECT_TRUE(same_bits(got.prompt_logprobs, want.prompt_logprobs)) << what << ": prompt log-probabilities";
}

// Guesses up to five tokens from what the choice got alone, each right with probability 3/4.
EngineCore::Drafter drafter_from(const std::map<std::string, Heard>& alone, std::mt19937_64& random) {
  return [&alone, &random](const Request& request, int32_t choice, std::span<const int32_t> tokens) {
    const std::vector<int32_t>& ids = alone.at(request.id).choices[static_cast<size_t>(choice)].ids;
    std::vector<int32_t> guess;
    for (size_t i = tokens.size() - request.prompt.size(); i < ids.size() && guess.size() < 5; ++i)
      guess.push_back(random() % 4 != 0 ? ids[i] : (ids[i] + 1) % 100);
    return guess;
  };
}

void check_model(const std::string& path, KvType kv, int count, int64_t context, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Request> requests;
  std::map<std::string, Heard> alone;
  {
    auto engine = TestEngine::create(engine_options(path, {.name = "alone", .prefix_caching = false}, kv, context));
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    const auto checkpoint = Checkpoint::open(path);  // a tokenizer may know more tokens than the model
    requests = mixed_requests(count, (*checkpoint)->hparams().vocab_size, random);
    for (const Request& request : requests) {
      ASSERT_TRUE((*engine)->submit(request).ok());
      (*engine)->run();
    }
    alone = (*engine)->take_heard();
  }
  for (const Variation& variation : kVariations) {
    auto engine = TestEngine::create(engine_options(path, variation, kv, context));
    ASSERT_TRUE(engine.ok()) << variation.name << ": " << engine.status().message();
    if (variation.drafts) (*engine)->core().set_drafter(drafter_from(alone, random));
    // In two waves, so that the second finds the cache warm and the first still running.
    for (size_t i = 0; i < requests.size(); ++i) {
      const Status accepted = (*engine)->submit(requests[i]);
      ASSERT_TRUE(accepted.ok()) << variation.name << ": " << accepted.message();
      if (i == requests.size() / 2) {
        for (int step = 0; step < 5; ++step) (*engine)->core().step([&] { return (*engine)->now_ns += 1000; });
      }
    }
    (*engine)->run();
    ASSERT_TRUE((*engine)->core().scheduler().check_invariants().ok())
        << (*engine)->core().scheduler().check_invariants().message();
    auto heard = (*engine)->take_heard();
    for (const Request& request : requests) {
      expect_equal(heard[request.id], alone[request.id],
                   "seed " + std::to_string(seed) + ", " + variation.name + ", " + request.id);
    }
    const SchedulerCounters& counters = (*engine)->core().scheduler().counters();
    // So many requests do not fit; of fewer, the seed may have drawn short ones.
    if (variation.kv_tokens < kPlentyOfTokens && count >= kManyRequests) {
      EXPECT_GT(counters.preemptions, 0) << variation.name << ", seed " << seed;
    }
    if (variation.drafts) {
      EXPECT_GT(counters.accepted_tokens, 0) << variation.name;
      EXPECT_GT(counters.drafted_tokens, counters.accepted_tokens) << variation.name;
    }
    if (variation.prefix_caching) {
      EXPECT_GT(counters.prefix_hit_tokens, 0) << variation.name;
    }
  }
}

uint64_t test_seed() {
  const char* given = std::getenv("QUIRE_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

class TinyEquality : public testing::TestWithParam<std::pair<const char*, KvType>> {};

TEST_P(TinyEquality, AnswersDoNotDependOnCompany) {
  check_model(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny/" + GetParam().first, GetParam().second,
              kManyRequests, 512, test_seed());
}

INSTANTIATE_TEST_SUITE_P(Tiny, TinyEquality,
                         testing::Values(std::pair("llama-gqa-llama3rope", KvType::kBF16),
                                         std::pair("gemma3", KvType::kBF16), std::pair("qwen2", KvType::kBF16),
                                         std::pair("gemma3", KvType::kI8), std::pair("qwen2", KvType::kI8)));

class RealEquality : public testing::TestWithParam<std::pair<const char*, KvType>> {};

// Heavy: many requests in the full run, few otherwise.
TEST_P(RealEquality, AnswersDoNotDependOnCompany) {
  const char* directory = std::getenv("QUIRE_MODELS");
  if (directory == nullptr) GTEST_SKIP() << "QUIRE_MODELS is not set";
  const std::string path = std::string(directory) + "/" + GetParam().first;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is missing";
  check_model(path, GetParam().second, std::getenv("QUIRE_FULL") != nullptr ? kManyRequests : 12, 512, test_seed());
}

INSTANTIATE_TEST_SUITE_P(Real, RealEquality,
                         testing::Values(std::pair("smollm2-135m-instruct-q4_1.gguf", KvType::kBF16),
                                         std::pair("smollm2-135m-instruct-q4_1.gguf", KvType::kI8),
                                         std::pair("gemma3-270m-q4_k_m.gguf", KvType::kBF16)));

}  // namespace
}  // namespace quire
