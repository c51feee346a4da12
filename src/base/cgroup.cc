#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace quire {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 60;  // v1 has no word for it, only numbers beyond any memory

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// A whole decimal number; "max", blanks and anything else are none.
std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<int64_t> number_in(const std::string& path) {
  const std::vector<std::string> lines = lines_of(path);
  return lines.empty() ? std::nullopt : number(lines.front());
}

template <typename T>
void limit(std::optional<T>& to, std::optional<T> by) {
  if (by.has_value()) to = to.has_value() ? std::min(*to, *by) : by;
}

// Bytes of cached files, which the kernel gives up before a group runs out of memory.
int64_t reclaimable_bytes(const std::string& group, std::string_view prefix) {
  int64_t bytes = 0;
  for (const std::string& line : lines_of(group + "/memory.stat")) {
    for (const char* name : {"active_file ", "inactive_file "}) {
      const std::string key = std::string(prefix) + name;
      if (!line.starts_with(key)) continue;
      bytes += std::clamp<int64_t>(number(std::string_view(line).substr(key.size())).value_or(0), 0, kUnlimited);
    }
  }
  return bytes;
}

std::optional<int64_t> memory_left(std::optional<int64_t> most, std::optional<int64_t> used, int64_t reclaimable) {
  if (!most.has_value() || *most < 0 || *most >= kUnlimited) return std::nullopt;
  // Counters are read one after the other, so the cached bytes may be more than what was in use just before.
  return std::max<int64_t>(*most - std::max<int64_t>(std::max<int64_t>(used.value_or(0), 0) - reclaimable, 0), 0);
}

std::optional<double> cores_of(std::optional<int64_t> quota_us, std::optional<int64_t> period_us) {
  if (quota_us.value_or(0) <= 0 || period_us.value_or(0) <= 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

void read_v2(const std::string& group, CgroupLimits& limits) {
  const std::vector<std::string> lines = lines_of(group + "/cpu.max");
  const std::vector<std::string> cpu = lines.empty() ? std::vector<std::string>() : split(lines.front(), ' ');
  if (cpu.size() == 2) limit(limits.cores, cores_of(number(cpu[0]), number(cpu[1])));
  limit(limits.memory_bytes, memory_left(number_in(group + "/memory.max"), number_in(group + "/memory.current"),
                                         reclaimable_bytes(group, "")));
}

void read_v1_cpu(const std::string& group, CgroupLimits& limits) {
  limit(limits.cores, cores_of(number_in(group + "/cpu.cfs_quota_us"), number_in(group + "/cpu.cfs_period_us")));
}

void read_v1_memory(const std::string& group, CgroupLimits& limits) {
  limit(limits.memory_bytes,
        memory_left(number_in(group + "/memory.limit_in_bytes"), number_in(group + "/memory.usage_in_bytes"),
                    reclaimable_bytes(group, "total_")));  // with the groups below, as the use is
}

// A mounted hierarchy: `top` is the group that its mount point shows.
struct Mount {
  std::string point;
  std::string top;
  std::vector<std::string> controllers;  // v1; none for v2
};

// Blanks and the like stand in mountinfo as "\040".
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const bool octal = text[i] == '\\' && i + 3 < text.size() &&
                       std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr == text.data() + i + 4;
    plain += octal ? static_cast<char>(code) : text[i];
    if (octal) i += 3;
  }
  return plain;
}

std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  for (const std::string& line : lines_of(root + "/proc/self/mountinfo")) {
    // ID PARENT DEVICE TOP POINT OPTIONS [more]... - TYPE SOURCE CONTROLLERS-AND-OPTIONS
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> before = split(std::string_view(line).substr(0, dash), ' ');
    const std::vector<std::string> after = split(std::string_view(line).substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || (after[0] != "cgroup" && after[0] != "cgroup2")) continue;
    Mount mount{.point = root + unescaped(before[4]), .top = unescaped(before[3]), .controllers = {}};
    if (after[0] == "cgroup") mount.controllers = split(after[2], ',');
    if (after[0] == "cgroup" && mount.controllers.empty()) continue;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// What leads from the group that is mounted to `group` ("" or "/a/b"); nothing where it is not below it.
std::optional<std::string> below(const std::string& group, const std::string& top) {
  std::string rest = group;
  if (top != "/") {
    if (!group.starts_with(top)) return std::nullopt;
    rest = group.substr(top.size());
  }
  if (rest == "/") rest.clear();
  if (!rest.empty() && rest.front() != '/') return std::nullopt;
  if ((rest + "/").find("/../") != std::string::npos) return std::nullopt;
  return rest;
}

using ReadGroup = std::function<void(const std::string& folder, CgroupLimits& limits)>;

// Asks `group` and all groups around it that a mount of the controller (v2: none) shows.
void read_groups(const std::vector<Mount>& mounts, std::string_view controller, const std::string& group,
                 const ReadGroup& read, CgroupLimits& limits) {
  const Mount* found = nullptr;
  std::optional<std::string> path;
  for (const Mount& mount : mounts) {
    const auto& held = mount.controllers;
    if (controller.empty() ? !held.empty() : std::find(held.begin(), held.end(), controller) == held.end()) continue;
    if (found != nullptr && path.has_value()) break;  // the first that shows the group, or else the last
    found = &mount;
    path = below(group, mount.top);
  }
  if (found == nullptr) return;
  std::string rest = path.value_or("");
  for (;;) {
    read(found->point + rest, limits);
    if (rest.empty()) return;
    rest.resize(rest.rfind('/'));
  }
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::vector<Mount> mounts = read_mounts(root);
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    // HIERARCHY:CONTROLLERS:GROUP; v2 is "0::GROUP". A group's name may hold colons.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string group = line.substr(second + 1);
    const std::vector<std::string> controllers =
        split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    if (controllers.empty()) read_groups(mounts, "", group, read_v2, limits);
    for (const std::string& controller : controllers) {
      if (controller == "cpu") read_groups(mounts, controller, group, read_v1_cpu, limits);
      if (controller == "memory") read_groups(mounts, controller, group, read_v1_memory, limits);
    }
  }
  return limits;
}

}  // namespace quire
