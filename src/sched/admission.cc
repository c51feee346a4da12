#include "sched/admission.h"

#include <algorithm>

namespace quire {
namespace {

constexpr size_t kQuantilePercent = 90;
constexpr int64_t kLengthBeforeAnyWasSeen = 256;

}  // namespace

void LengthHistory::add(int64_t output_tokens) {
  if (sorted_.size() == kCapacity) sorted_.erase(std::ranges::lower_bound(sorted_, ring_[next_]));
  sorted_.insert(std::ranges::upper_bound(sorted_, output_tokens), output_tokens);
  ring_[next_] = output_tokens;
  next_ = (next_ + 1) % kCapacity;
}

int64_t LengthHistory::expect(int64_t output, int64_t most) const {
  const auto longer = std::ranges::upper_bound(sorted_, output);
  int64_t length;
  if (longer != sorted_.end()) {
    const size_t count = static_cast<size_t>(sorted_.end() - longer);
    length = longer[static_cast<std::ptrdiff_t>((count - 1) * kQuantilePercent / 100)];
  } else {
    length = std::max(kLengthBeforeAnyWasSeen, 2 * output);  // none that long: it may double
  }
  return std::min(most, length - output);
}

PeakProjection::PeakProjection(const KvCache& cache) : cache_(cache) {
  for (int64_t g = 0; g < cache.groups(); ++g) {
    demand_.push_back({cache.pool(g).used_pages(), 0});
  }
}

PeakProjection::Growth PeakProjection::growth_of(const Sequence& sequence, int64_t shared_pages,
                                                 int64_t expected_output) const {
  const int64_t returned = std::max<int64_t>(0, cache_.pages_for(sequence.size()) - shared_pages);
  return {expected_output, sequence.size(), sequence.branches, returned};
}

void PeakProjection::add_demand(const Sequence& sequence, const Growth& growth, const PrefixMatch* match,
                                std::vector<GroupDemand>& demand) const {
  for (int64_t g = 0; g < cache_.groups(); ++g) {
    const int64_t window = cache_.config().groups[static_cast<size_t>(g)].window;
    GroupDemand& group = demand[static_cast<size_t>(g)];
    if (window == 0) {
      const int64_t held = match == nullptr
                               ? static_cast<int64_t>(sequence.pages.groups[static_cast<size_t>(g)].table.size())
                               : match->pages - cache_.free_pages_of(sequence.pages, *match, g);
      group.now += std::max<int64_t>(0, cache_.pages_for(growth.size) - held) + growth.branches - 1;
    } else {
      const int64_t whole = cache_.pages_for(growth.size + growth.remaining);
      group.at_most += growth.branches * std::min(whole, cache_.pages_for(window - 1) + 1);
    }
  }
}

void PeakProjection::add(const Sequence& sequence, int64_t expected_output) {
  int64_t shared = 0;
  for (const SequencePages::Group& group : sequence.pages.groups) shared = std::max(shared, group.shared);
  growing_.push_back(growth_of(sequence, shared, expected_output));
  add_demand(sequence, growing_.back(), nullptr, demand_);
}

// The largest number of pages by which the global groups outgrow what they need now. Between two ends everything only
// grows, so the peak is just before one of them.
int64_t PeakProjection::peak_growth(std::vector<Growth>& growing) const {
  std::ranges::sort(growing, {}, &Growth::remaining);
  const int64_t page_tokens = cache_.config().page_tokens;
  std::vector<int64_t> alive(static_cast<size_t>(page_tokens));  // by how many slots of the last page are taken
  for (const Growth& growth : growing) alive[static_cast<size_t>((growth.size - 1) % page_tokens)] += growth.branches;
  int64_t peak = 0;
  int64_t returned = 0;
  for (const Growth& growth : growing) {
    int64_t pages = -returned;
    for (int64_t taken = 0; taken < page_tokens; ++taken) {
      pages += alive[static_cast<size_t>(taken)] * ((taken + growth.remaining) / page_tokens);
    }
    peak = std::max(peak, pages);
    returned += growth.returned;
    alive[static_cast<size_t>((growth.size - 1) % page_tokens)] -= growth.branches;
  }
  return peak;
}

bool PeakProjection::fits(const Sequence& candidate, const PrefixMatch& match, int64_t expected_output) {
  std::vector<Growth> growing = growing_;
  growing.push_back(growth_of(candidate, match.pages, expected_output));
  std::vector<GroupDemand> demand = demand_;
  add_demand(candidate, growing.back(), &match, demand);
  const int64_t growth = peak_growth(growing);
  for (int64_t g = 0; g < cache_.groups(); ++g) {
    const GroupDemand& group = demand[static_cast<size_t>(g)];
    const int64_t pages = cache_.pool(g).pages();
    if (group.now + growth > pages && cache_.config().groups[static_cast<size_t>(g)].window == 0) return false;
    if (group.at_most > pages) return false;
  }
  return true;
}

}  // namespace quire
