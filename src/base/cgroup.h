// What the control groups of this process leave it, in a container or under a service manager: cgroups v1, v2 and both at
// once. A group is limited by all groups around it, so each is asked, from the process's own up to where the hierarchy is
// mounted; the smallest limit counts.
//
// Where the mount does not show the process's group (it lies outside of the cgroup namespace, or of what was mounted), the
// limits at the mount point are taken: in a container these are the container's, and one limit too many costs less than one
// too few. Files that are missing or hold anything else than a limit set none. Thread: any; reads files each time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quire {

struct CgroupLimits {
  std::optional<double> cores;  // CPU time a second
  // What can still be taken: limit less use, without files that are merely cached. Not below 0.
  std::optional<int64_t> memory_bytes;
};

// `root`: the folder that holds proc/ and sys/, for tests.
CgroupLimits read_cgroup_limits(const std::string& root = "");

}  // namespace quire
