// Prints hashes of all logits' bits of checkpoints, so that two builds of quire can be held against each other
// (tools/compare_logits.py).
//
//     quire_logits_dump CHECKPOINT...
//
// One line for each checkpoint and way to compute: its name, the way, and the hash, or the reason it is not loaded.
// The rows are the same for every model: a prompt of 40 tokens, decodes of it, and steps that it shares with a second
// sequence. It uses the model alone, without engine and sampling, and only what changes seldom: it must compile in an
// older checkout too.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "support/test_model.h"

namespace quire {
namespace {

constexpr int64_t kPrompt = 40;
constexpr int64_t kOtherPrompt = 19;
constexpr int64_t kDecodes = 4;

struct Way {
  const char* name;
  CpuDeviceOptions device;
};

// FNV-1a. Order and every bit count.
class Hash {
 public:
  void add(const std::vector<float>& values) {
    for (const float value : values) {
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      for (int shift = 0; shift < 32; shift += 8) state_ = (state_ ^ ((bits >> shift) & 255)) * 1099511628211u;
    }
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 14695981039346656037u;
};

// The forward passes of one model, all of whose rows' logits go into a hash.
class Steps {
 public:
  explicit Steps(TestModel& test) : test_(test) {}

  // The next `rows` tokens of a sequence join the step that is being made.
  void add(int64_t sequence, int64_t rows) {
    int64_t& position = positions_[static_cast<size_t>(sequence)];
    step_.sequences.push_back({.rows = rows, .first_position = position, .page_tables = test_.page_tables(sequence)});
    for (int64_t i = 0; i < rows; ++i, ++position)
      step_.tokens.push_back(static_cast<int32_t>((sequence * 977 + position * 7919 + 13) % test_.vocab()));
  }

  void run() {
    std::vector<int32_t> rows(step_.tokens.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<float> logits(rows.size() * static_cast<size_t>(test_.vocab()));
    QUIRE_CHECK(test_.model().forward(step_).ok());
    test_.model().logits(rows, logits.data());
    hash_.add(logits);
    step_ = StepInput();
  }

  uint64_t hash() const { return hash_.value(); }

 private:
  TestModel& test_;
  StepInput step_;
  std::vector<int64_t> positions_ = {0, 0};
  Hash hash_;
};

uint64_t hash_of(TestModel& test) {
  Steps steps(test);
  steps.add(0, kPrompt);
  steps.run();
  for (int64_t i = 0; i < kDecodes; ++i) {
    steps.add(0, 1);
    steps.run();
  }
  steps.add(0, 1);
  steps.add(1, kOtherPrompt);
  steps.run();
  for (int64_t i = 0; i < kDecodes; ++i) {
    steps.add(1, 1);
    steps.add(0, 1);
    steps.run();
  }
  return steps.hash();
}

std::string line_of(const std::string& path, const Way& way) {
  auto test = TestModel::load(
      path, {.device = way.device, .weights = {}, .context = 64, .sequences = 2, .max_rows = 64, .page_seed = 7});
  if (!test.ok()) return "not loaded: " + test.status().message();
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_of(**test)));
  return text;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  const quire::Way ways[] = {{"default", {.threads = 2, .kv = std::nullopt}},
                             {"f32", {.threads = 2, .f32 = true, .kv = std::nullopt}},
                             {"int8-kv", {.threads = 2, .kv = quire::KvType::kI8}}};
  for (int i = 1; i < argc; ++i) {
    const std::string name = std::filesystem::path(argv[i]).filename().string();
    for (const quire::Way& way : ways)
      std::printf("%s %s %s\n", name.c_str(), way.name, quire::line_of(argv[i], way).c_str());
    std::fflush(stdout);
  }
  return argc > 1 ? 0 : 2;
}
