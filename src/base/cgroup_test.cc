#include "base/cgroup.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/machine.h"

namespace quire {
namespace {

// A tree of files as the kernel shows them.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "quire-cgroup-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  // The group that the process is in, and what is mounted.
  void process(const std::string& groups, const std::string& mounts) const {
    write("/proc/self/cgroup", groups);
    write("/proc/self/mountinfo", "21 20 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" + mounts);
  }
  void v2(const std::string& group, const std::string& top = "/") const {
    process("0::" + group + "\n",
            "35 25 0:30 " + top + " /sys/fs/cgroup rw,nosuid shared:9 master:3 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void v1(const std::string& group, const std::string& top = "/") const {
    process("12:name=systemd:" + group + "\n4:memory:" + group + "\n3:cpu,cpuacct:" + group + "\n",
            "33 32 0:29 " + top + " /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:10 - cgroup cgroup rw,cpu,cpuacct\n" +
                "34 32 0:30 " + top + " /sys/fs/cgroup/memory rw,nosuid shared:11 - cgroup cgroup rw,memory\n" +
                "36 32 0:31 " + top + " /sys/fs/cgroup/systemd rw shared:12 - cgroup cgroup rw,xattr,name=systemd\n");
  }
  CgroupLimits limits() const { return read_cgroup_limits(root_); }

  std::string root_;
};

TEST_F(CgroupTest, NothingThereIsNoLimit) {
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
  v2("/a");
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
  v1("/a");
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
}

TEST_F(CgroupTest, ReadsVersion2) {
  v2("/system.slice/quire.service");
  const std::string group = "/sys/fs/cgroup/system.slice/quire.service";
  write(group + "/cpu.max", "150000 100000\n");
  write(group + "/memory.max", "1000000\n");
  write(group + "/memory.current", "700000\n");
  EXPECT_EQ(limits().cores, 1.5);
  EXPECT_EQ(limits().memory_bytes, 300000);

  write(group + "/memory.stat", "anon 400000\nfile 300000\ninactive_file 200000\nactive_file 50000\nslab 7\n");
  EXPECT_EQ(limits().memory_bytes, 550000);
  write(group + "/memory.current", "1900000\n");
  EXPECT_EQ(limits().memory_bytes, 0);
  write(group + "/memory.current", "100\n");  // read before the cache grew
  EXPECT_EQ(limits().memory_bytes, 1000000);

  write(group + "/cpu.max", "max 100000\n");
  write(group + "/memory.max", "max\n");
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
}

TEST_F(CgroupTest, ReadsVersion1) {
  v1("/docker/abc");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  const std::string group = "/sys/fs/cgroup/memory/docker/abc";
  write(group + "/memory.limit_in_bytes", "5000000\n");
  write(group + "/memory.usage_in_bytes", "4000000\n");
  EXPECT_EQ(limits().cores, 0.5);
  EXPECT_EQ(limits().memory_bytes, 1000000);
  // The use counts the groups below, so their cache counts too.
  write(group + "/memory.stat",
        "inactive_file 1\nactive_file 2\ntotal_inactive_file 600000\ntotal_active_file 400000\n");
  EXPECT_EQ(limits().memory_bytes, 2000000);

  write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
  write(group + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(limits().cores.has_value());
  EXPECT_FALSE(limits().memory_bytes.has_value());
}

TEST_F(CgroupTest, TheSmallestLimitOfAllGroupsAroundCounts) {
  v2("/a/b/c");
  const auto group = [&](const std::string& path, const char* cpu, const char* most, const char* used) {
    write("/sys/fs/cgroup" + path + "/cpu.max", cpu);
    write("/sys/fs/cgroup" + path + "/memory.max", most);
    write("/sys/fs/cgroup" + path + "/memory.current", used);
  };
  group("/a/b/c", "400000 100000", "max", "10");
  group("/a/b", "max 100000", "1000", "100");
  group("/a", "250000 100000", "5000", "4500");
  EXPECT_EQ(limits().cores, 2.5);
  EXPECT_EQ(limits().memory_bytes, 500);
  group("/a/b/c", "100000 100000", "300", "10");
  EXPECT_EQ(limits().cores, 1.0);
  EXPECT_EQ(limits().memory_bytes, 290);
  // A group that is not around this one, and what lies above the mount.
  group("/a/x", "1000 100000", "1", "0");
  write("/sys/fs/cpu.max", "1000 100000");
  EXPECT_EQ(limits().cores, 1.0);
  EXPECT_EQ(limits().memory_bytes, 290);

  v1("/a/b");
  for (const auto& [path, quota] : {std::pair("", "90000"), std::pair("/a", "70000"), std::pair("/a/b", "80000")}) {
    write(std::string("/sys/fs/cgroup/cpu,cpuacct") + path + "/cpu.cfs_quota_us", quota);
    write(std::string("/sys/fs/cgroup/cpu,cpuacct") + path + "/cpu.cfs_period_us", "10000");
  }
  EXPECT_EQ(limits().cores, 7.0);
}

// A container whose mount shows its own group only, under the name that the host knows.
TEST_F(CgroupTest, AMountOfPartOfTheHierarchy) {
  v1("/docker/abc/inner", "/docker/abc");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "200000");
  write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limits().cores, 2.0);
  v1("/docker/abc", "/docker/abc");
  EXPECT_EQ(limits().cores, 3.0);
  v1("/docker/abcd", "/docker/abc");  // another group, whose name begins alike
  EXPECT_EQ(limits().cores, 3.0);
  v1("/elsewhere/inner", "/docker/abc");
  EXPECT_EQ(limits().cores, 3.0);
}

TEST_F(CgroupTest, Namespaces) {
  write("/sys/fs/cgroup/cpu.max", "300000 100000");
  write("/sys/fs/cgroup/x/cpu.max", "200000 100000");
  write("/sys/fs/x/cpu.max", "100000 100000");  // where "/../x" would lead as a path
  v2("/");
  EXPECT_EQ(limits().cores, 3.0);
  v2("/x");
  EXPECT_EQ(limits().cores, 2.0);
  v2("/../x");  // outside of the namespace, and of what is mounted
  EXPECT_EQ(limits().cores, 3.0);
  v2("/../x", "/..");  // outside of the namespace, mounted before it was made
  EXPECT_EQ(limits().cores, 2.0);
  v2("/../x", "/../..");
  EXPECT_EQ(limits().cores, 3.0);
  v2("/x/../../x");
  EXPECT_EQ(limits().cores, 3.0);
}

TEST_F(CgroupTest, BothVersionsAtOnce) {
  process("5:cpu:/v1\n4:memory:/v1\n0::/v2\n",
          "33 32 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
          "34 32 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "41 32 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/cpu/v1/cpu.cfs_quota_us", "250000");
  write("/sys/fs/cgroup/cpu/v1/cpu.cfs_period_us", "100000");
  write("/sys/fs/cgroup/memory/v1/memory.limit_in_bytes", "1000");
  write("/sys/fs/cgroup/memory/v1/memory.usage_in_bytes", "1");
  EXPECT_EQ(limits().cores, 2.5);
  EXPECT_EQ(limits().memory_bytes, 999);
  write("/sys/fs/cgroup/unified/v2/cpu.max", "50000 100000");
  write("/sys/fs/cgroup/unified/v2/memory.max", "2000");
  EXPECT_EQ(limits().cores, 0.5);
  EXPECT_EQ(limits().memory_bytes, 999);
}

TEST_F(CgroupTest, OfSeveralMountsTheOneThatShowsTheGroup) {
  process("0::/pod/abc\n",
          "40 30 0:30 /other /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
          "41 30 0:30 / /host\\040files/cgroup rw - cgroup2 cgroup2 rw\n"
          "42 30 0:30 /third /mnt rw - cgroup2 cgroup2 rw\n");
  write("/sys/fs/cgroup/cpu.max", "100000 100000");
  write("/mnt/cpu.max", "200000 100000");
  write("/host files/cgroup/pod/abc/cpu.max", "500000 100000");
  EXPECT_EQ(limits().cores, 5.0);
}

TEST_F(CgroupTest, GarbageIsNoLimit) {
  for (const char* cpu : {"", "\n", "abc def\n", "100000\n", "0 100000\n", "-5 100000\n", "100000 0\n", "1e5 1e5\n",
                          "99999999999999999999 100000\n", "100000 100000 7\n", "\xff\xfe"}) {
    v2("/a");
    write("/sys/fs/cgroup/a/cpu.max", cpu);
    write("/sys/fs/cgroup/a/memory.max", cpu);
    EXPECT_FALSE(limits().cores.has_value()) << cpu;
  }
  for (const char* most : {"", "lots", "-1", "99999999999999999999", "12 34", "1.5"}) {
    write("/sys/fs/cgroup/a/memory.max", most);
    EXPECT_FALSE(limits().memory_bytes.has_value()) << most;
  }
  write("/sys/fs/cgroup/a/memory.max", "1000");
  write("/sys/fs/cgroup/a/memory.current", "-9223372036854775808");
  write("/sys/fs/cgroup/a/memory.stat",
        "inactive_file 9223372036854775807\nactive_file 9223372036854775807\nactive_file");
  EXPECT_EQ(limits().memory_bytes, 1000);
  for (const char* lines : {"", "0", "0:", "0::", "::", "0::a", "\n\n", "0:cpu", "zzz:cpu:/a", "9:,,,:/a"}) {
    write("/proc/self/cgroup", lines);
    EXPECT_FALSE(limits().cores.has_value()) << lines;
  }
  v2("/a");
  for (const char* mounts :
       {"", " - ", "- cgroup2 cgroup2 rw", "1 2 3 - cgroup2 cgroup2 rw", "1 2 3 / /x rw - cgroup2"}) {
    write("/proc/self/mountinfo", mounts);
    EXPECT_FALSE(limits().memory_bytes.has_value()) << mounts;
  }
}

TEST_F(CgroupTest, CoresAreRoundedUpAndNeverNone) {
  v2("/a");
  const int all = usable_cores(root_);  // no limit yet: the affinity mask
  EXPECT_GE(all, 1);
  EXPECT_GE(usable_cores(), 1);
  const auto with = [&](const char* quota) {
    write("/sys/fs/cgroup/a/cpu.max", std::string(quota) + " 100000");
    return usable_cores(root_);
  };
  EXPECT_EQ(with("1000"), 1);
  EXPECT_EQ(with("50000"), 1);
  EXPECT_EQ(with("100000"), 1);
  EXPECT_EQ(with("100001"), std::min(all, 2));
  EXPECT_EQ(with("150000"), std::min(all, 2));
  EXPECT_EQ(with("200000"), std::min(all, 2));
  EXPECT_EQ(with("9000000000000"), all);
}

TEST_F(CgroupTest, AvailableMemoryIsTheLeastOfMachineAndGroups) {
  EXPECT_EQ(available_memory_bytes(root_), 0);
  v2("/a");
  write("/sys/fs/cgroup/a/memory.max", "4096000");
  EXPECT_EQ(available_memory_bytes(root_), 4096000);
  write("/proc/meminfo", "MemTotal:       100 kB\nMemFree: 3 kB\nMemAvailable:      2000 kB\nBuffers: 1 kB\n");
  EXPECT_EQ(available_memory_bytes(root_), 2048000);
  write("/sys/fs/cgroup/a/memory.max", "1000");
  EXPECT_EQ(available_memory_bytes(root_), 1000);
  EXPECT_GT(available_memory_bytes(), 0);
}

}  // namespace
}  // namespace quire
