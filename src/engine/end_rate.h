// How many requests end per second, measured over the last of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

class EndRate {
 public:
  void add(int64_t now_ns) {
    if (ends_ns_.size() < kWindow) {
      ends_ns_.push_back(now_ns);
    } else {
      ends_ns_[count_ % kWindow] = now_ns;
    }
    ++count_;
  }
  // 0 before two have ended.
  double per_second(int64_t now_ns) const {
    if (ends_ns_.size() < 2) return 0;
    const int64_t oldest = *std::min_element(ends_ns_.begin(), ends_ns_.end());
    return static_cast<double>(ends_ns_.size()) / std::max(1e-9, static_cast<double>(now_ns - oldest) / 1e9);
  }

 private:
  static constexpr size_t kWindow = 64;

  std::vector<int64_t> ends_ns_;  // a ring
  size_t count_ = 0;
};

}  // namespace quire
