#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/philox.h"
#include "sample/softmax_weight.h"

namespace quire {
namespace {

constexpr float kGreedyBelow = 1e-5f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
constexpr size_t kMaxVocabulary = size_t{1} << 20;  // beyond it a sum of weights could overflow

// The highest logit, NaN ignored. Independent lanes, since one running maximum is bound by its own latency.
float max_of(std::span<const float> logits) {
  constexpr size_t kLanes = 8;
  std::array<float, kLanes> lanes;
  lanes.fill(kMinusInfinity);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
    }
  }
  float best = kMinusInfinity;
  for (; i < logits.size(); ++i) best = logits[i] > best ? logits[i] : best;
  for (const float lane : lanes) best = lane > best ? lane : best;
  return best;
}

constexpr auto kMoreLikely = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

template <typename Candidate>
uint64_t total_weight(std::span<const Candidate> candidates) {
  uint64_t sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.weight;
  return sum;
}

template <typename Candidate>
struct Located {
  const Candidate* candidate;
  uint64_t cumulative;  // weight up to and including it
};

// The first candidate, in order of likelihood, whose cumulative weight exceeds `target`, which is below the total.
// Reorders `candidates`. A quickselect by weight, so its cost is linear.
template <typename Candidate>
Located<Candidate> locate(std::span<Candidate> candidates, uint64_t target) {
  constexpr size_t kSortBelow = 64;
  uint64_t before = 0;
  while (candidates.size() > kSortBelow) {
    const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(candidates.size() / 2);
    std::nth_element(candidates.begin(), middle, candidates.end(), kMoreLikely);
    const std::span<Candidate> upper = candidates.first(candidates.size() / 2);
    const uint64_t upper_weight = total_weight<Candidate>(upper);
    if (target < before + upper_weight) {
      candidates = upper;
    } else {
      before += upper_weight;
      candidates = candidates.subspan(upper.size());
    }
  }
  std::sort(candidates.begin(), candidates.end(), kMoreLikely);
  for (const Candidate& candidate : candidates) {
    before += candidate.weight;
    if (before > target) return {&candidate, before};
  }
  QUIRE_CHECK(before > target);  // which lies below the total weight
  return {};
}

// floor(range * bits / 2^64), below `range`.
uint64_t scale_bits(uint64_t bits, uint64_t range) {
  __extension__ using uint128 = unsigned __int128;
  return static_cast<uint64_t>(static_cast<uint128>(bits) * range >> 64);
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, std::span<const int32_t> prompt)
    : Sampler(std::make_shared<const SamplingParams>(params), params.seed, prompt) {
  QUIRE_CHECK(params.validate().ok());
}

Sampler::Sampler(std::shared_ptr<const SamplingParams> params, uint64_t seed, std::span<const int32_t> prompt)
    : params_(std::move(params)), seed_(seed) {
  for (const int32_t id : prompt) mark_seen(id);
}

void Sampler::mark_seen(int32_t id) {
  QUIRE_CHECK(id >= 0);
  if (params_->repetition_penalty == 1.0f) return;
  const auto index = static_cast<size_t>(id);
  if (index >= seen_.size()) seen_.resize(index + 1);
  if (seen_[index]) return;
  seen_[index] = true;
  seen_ids_.push_back(id);
}

void Sampler::accept(int32_t id) {
  mark_seen(id);
  if (!params_->bad_words.empty()) output_.push_back(id);
  if (params_->frequency_penalty == 0.0f && params_->presence_penalty == 0.0f) return;
  const auto index = static_cast<size_t>(id);
  if (index >= counts_.size()) counts_.resize(index + 1);
  if (counts_[index]++ == 0) counted_ids_.push_back(id);
}

Result<int32_t> Sampler::sample(std::span<const float> logits, uint64_t output_index) {
  QUIRE_CHECK(!logits.empty() && logits.size() <= kMaxVocabulary && seen_.size() <= logits.size());
  const std::span<const float> row = adjusts(output_index) ? adjust(logits, output_index) : logits;
  const float max_logit = max_of(row);
  if (!std::isfinite(max_logit)) {
    return corrupt("the model's logits at output token " + std::to_string(output_index) +
                   " are not finite; the checkpoint is damaged, or its numbers exceed what the compute mode can hold "
                   "(try --compute f32)");
  }
  if (params_->temperature < kGreedyBelow) {
    return static_cast<int32_t>(std::find(row.begin(), row.end(), max_logit) - row.begin());
  }
  return draw(row, max_logit, random_bits(seed_, output_index, RandomPurpose::kSample));
}

bool Sampler::adjusts(uint64_t output_index) const {
  return !seen_ids_.empty() || !counted_ids_.empty() || !params_->logit_bias.empty() || !params_->bad_words.empty() ||
         output_index < static_cast<uint64_t>(params_->min_tokens);
}

std::span<const float> Sampler::adjust(std::span<const float> logits, uint64_t output_index) {
  adjusted_.assign(logits.begin(), logits.end());
  mask_bad_words();
  if (output_index < static_cast<uint64_t>(params_->min_tokens)) {
    for (const int32_t id : params_->min_tokens_mask) adjusted_[static_cast<size_t>(id)] = kMinusInfinity;
  }
  for (const SamplingParams::Bias& entry : params_->logit_bias) adjusted_[static_cast<size_t>(entry.id)] += entry.bias;
  for (const int32_t id : seen_ids_) {
    float& logit = adjusted_[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / params_->repetition_penalty : logit * params_->repetition_penalty;
  }
  penalize_output();
  return adjusted_;
}

// The last token of a bad word is masked where the output ends with the tokens before it.
void Sampler::mask_bad_words() {
  for (const std::vector<int32_t>& word : params_->bad_words) {
    if (word.empty() || word.size() - 1 > output_.size()) continue;
    if (std::equal(word.begin(), word.end() - 1, output_.end() - static_cast<std::ptrdiff_t>(word.size() - 1))) {
      adjusted_[static_cast<size_t>(word.back())] = kMinusInfinity;
    }
  }
}

void Sampler::penalize_output() {
  for (const int32_t id : counted_ids_) {
    const auto index = static_cast<size_t>(id);
    adjusted_[index] -= params_->frequency_penalty * static_cast<float>(counts_[index]) + params_->presence_penalty;
  }
}

uint64_t Sampler::weight_of(float logit, float max_logit) const {
  return softmax_weight((static_cast<double>(logit) - max_logit) / params_->temperature);
}

int32_t Sampler::draw(std::span<const float> logits, float max_logit, uint64_t bits) {
  // min-p: p >= m * p_max is l >= l_max + T ln m. The comparison is in float, rounded once, for every path below.
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  const double min_p_floor = max_logit + params_->temperature * std::log(static_cast<double>(params_->min_p));
  const float floor = static_cast<float>(std::max<double>(kLowest, min_p_floor));
  candidates_.clear();
  uint64_t total = 0;
  const bool has_top_k = params_->top_k > 0 && static_cast<size_t>(params_->top_k) < logits.size();
  if (has_top_k) {
    select_top_k(logits, max_logit, floor);
    total = total_weight<Candidate>(candidates_);
  } else if (params_->min_p > 0.0f) {
    gather(logits, max_logit, floor, kAll);
    total = total_weight<Candidate>(candidates_);
  } else {
    for (const float logit : logits) total += weight_of(logit, max_logit);
  }

  uint64_t kept = total;
  if (params_->top_p < 1.0f) {
    const auto wanted =
        static_cast<uint64_t>(std::ceil(static_cast<double>(params_->top_p) * static_cast<double>(total)));
    const uint64_t last = std::clamp<uint64_t>(wanted, 1, total) - 1;
    if (candidates_.empty()) gather(logits, max_logit, floor, last);
    kept = locate<Candidate>(candidates_, last).cumulative;
  }
  const uint64_t target = scale_bits(bits, kept);
  if (candidates_.empty()) gather(logits, max_logit, floor, target);
  return locate<Candidate>(candidates_, target).candidate->id;
}

// Leaves the k most likely tokens of at least `floor` in candidates_. A buffer of twice k (or more) is filled and cut
// back to k; what is cut raises the bar for the rest. Ids ascend, so a later logit equal to the bar loses its tie.
void Sampler::select_top_k(std::span<const float> logits, float max_logit, float floor) {
  const auto k = static_cast<size_t>(params_->top_k);
  const size_t capacity = std::max<size_t>(2 * k, 256);
  const auto cut_to_k = [&] {
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k) - 1, candidates_.end(),
                     kMoreLikely);
    candidates_.resize(k);
  };
  float bar = std::nextafter(floor, kMinusInfinity);
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > bar)) continue;
    candidates_.push_back({logits[id], static_cast<int32_t>(id), 0});
    if (candidates_.size() < capacity) continue;
    cut_to_k();
    bar = candidates_[k - 1].logit;
  }
  if (candidates_.size() > k) cut_to_k();
  for (Candidate& candidate : candidates_) candidate.weight = weight_of(candidate.logit, max_logit);
}

// Leaves in candidates_ every token of at least `floor`, or a shorter run of the most likely ones whose weight exceeds
// `enough`: most of the probability sits in few tokens, so the bar is lowered step by step until they suffice.
void Sampler::gather(std::span<const float> logits, float max_logit, float floor, uint64_t enough) {
  constexpr float kFirstDepth = 4.0f;  // in units of the temperature
  constexpr float kDepthStep = 2.0f;
  constexpr float kWeightless = 32.0f;
  for (float depth = enough == kAll ? kWeightless : kFirstDepth;; depth += kDepthStep) {
    const bool last = depth >= kWeightless;
    const float bar = last ? floor : std::max(floor, max_logit - depth * params_->temperature);
    candidates_.clear();
    uint64_t sum = 0;
    for (size_t id = 0; id < logits.size(); ++id) {
      if (!(logits[id] >= bar)) continue;
      candidates_.push_back({logits[id], static_cast<int32_t>(id), weight_of(logits[id], max_logit)});
      sum += candidates_.back().weight;
    }
    if (sum > enough || last) return;
  }
}

}  // namespace quire
