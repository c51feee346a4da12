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
    if (cache.config().groups[static_cast<size_t>(g)].window == 0) global_group_ = g;
  }
}

void PeakProjection::add(const Sequence& sequence, int64_t expected_output) {
  growing_.push_back({expected_output, sequence.size(), sequence.branches, 0, &sequence.pages});
  whole_growth_ += whole_growth(growing_.back());
  for (int64_t g = 0; g < cache_.groups(); ++g) {
    const int64_t held = static_cast<int64_t>(sequence.pages.groups[static_cast<size_t>(g)].table.size());
    add_demand(growing_.back(), g, held, demand_);
  }
}

int64_t PeakProjection::whole_growth(const Growth& growth) const {
  return growth.branches * (cache_.pages_for(growth.size + growth.remaining) - cache_.pages_for(growth.size));
}

void PeakProjection::add_demand(const Growth& growth, int64_t g, int64_t held, std::vector<GroupDemand>& demand) const {
  const int64_t window = cache_.config().groups[static_cast<size_t>(g)].window;
  GroupDemand& group = demand[static_cast<size_t>(g)];
  if (window == 0) {
    group.now += std::max<int64_t>(0, cache_.pages_for(growth.size) - held) + growth.branches - 1;
  } else {
    const int64_t whole = cache_.pages_for(growth.size + growth.remaining);
    group.at_most += growth.branches * std::min(whole, cache_.pages_for(window - 1) + 1);
  }
}

// The largest number of pages by which the global groups outgrow what they need now. Between two ends everything only
// grows, so the peak is just before one of them.
int64_t PeakProjection::peak_growth(std::vector<Growth>& growing) const {
  for (Growth& growth : growing) {
    if (growth.pages != nullptr) growth.shared = cache_.shared_pages(*growth.pages, global_group_);
  }
  std::ranges::sort(growing, {}, &Growth::remaining);
  const int64_t page_tokens = cache_.config().page_tokens;
  const auto slots_taken = [&](const Growth& growth) { return static_cast<size_t>((growth.size - 1) % page_tokens); };
  std::vector<int64_t> alive(static_cast<size_t>(page_tokens));  // by how many slots of the last page are taken
  int64_t all_alive = 0;
  for (const Growth& growth : growing) {
    alive[slots_taken(growth)] += growth.branches;
    all_alive += growth.branches;
  }
  int64_t peak = 0;
  int64_t returned = 0;
  for (const Growth& growth : growing) {
    // Each that is alive grows by `remaining` tokens: whole pages, and one more where the rest overflows its last page.
    int64_t pages = all_alive * (growth.remaining / page_tokens) - returned;
    for (int64_t taken = page_tokens - growth.remaining % page_tokens; taken < page_tokens; ++taken) {
      pages += alive[static_cast<size_t>(taken)];
    }
    peak = std::max(peak, pages);
    returned += cache_.pages_for(growth.size) - growth.shared;
    alive[slots_taken(growth)] -= growth.branches;
    all_alive -= growth.branches;
  }
  return peak;
}

bool PeakProjection::fits(const Sequence& candidate, const PrefixMatch& match, int64_t expected_output) const {
  const Growth grows{expected_output, candidate.size(), candidate.branches, match.pages, nullptr};
  std::vector<GroupDemand> demand = demand_;
  int64_t room = INT64_MAX;  // for growth, in the smallest global group
  for (int64_t g = 0; g < cache_.groups(); ++g) {
    // Matched pages that one sequence holds would be given back at its end, but not when the candidate holds them too.
    const int64_t free = cache_.matched_pages(candidate.pages, match, g, 0);
    const int64_t kept = cache_.matched_pages(candidate.pages, match, g, 1);
    add_demand(grows, g, match.pages - free - kept, demand);
    const GroupDemand& group = demand[static_cast<size_t>(g)];
    if (group.at_most > cache_.pool(g).pages()) return false;
    if (cache_.config().groups[static_cast<size_t>(g)].window == 0) {
      room = std::min(room, cache_.pool(g).pages() - group.now);
    }
  }
  if (whole_growth_ + whole_growth(grows) <= room) return true;  // even if nobody ended before the others
  std::vector<Growth> growing = growing_;
  growing.push_back(grows);
  return peak_growth(growing) <= room;
}

}  // namespace quire
