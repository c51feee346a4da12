#include "cli/doctor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/cgroup.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "capacity/model_setup.h"
#include "cli/generation.h"
#include "cli/help.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "hub/catalogue.h"
#include "hub/local_models.h"
#include "measure/roof.h"

namespace quire {
namespace {

using State = Check::State;

constexpr int kProbes = 8;

std::string fixed(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// What stands behind "NAME :" in a file of such lines; empty: nothing does.
std::string value_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Check check_program() {
  utsname system{};
  uname(&system);
  return {"program", State::kGood,
          version_text() + ", " + system.sysname + " " + system.release + ", " + system.machine};
}

Check check_processor() {
  const std::string name = value_of("/proc/cpuinfo", "model name");
  return {"processor", State::kGood, name.empty() ? "unknown" : name};
}

Check check_kernels(const Options& options) {
  const auto sizes = make_device_sizes(model_options(options, ""));
  if (!sizes.ok()) return {"kernels", State::kStops, sizes.status().message()};
  const std::string text = (*sizes)->description();
  if (!text.starts_with("scalar") || options.isa == "scalar") return {"kernels", State::kGood, text};
  return {"kernels", State::kRemark, text + "; without AVX2 quire is a hundred times slower"};
}

Check check_threads(const Options& options) {
  const int usable = usable_cores();
  const auto online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::string text = counted(options.threads > 0 ? options.threads : usable, "compute thread") + "; " +
                     count_text(usable) + " of " + counted(online, "core") + " may be used; load " +
                     first_line("/proc/loadavg").substr(0, 4);
  if (options.threads > usable) return {"threads", State::kRemark, text + "; more threads than cores are slower"};
  return {"threads", State::kGood, std::move(text)};
}

Check check_groups() {
  const CgroupLimits limits = read_cgroup_limits();
  const std::string cores = limits.cores ? "at most " + fixed(*limits.cores, 1) + " cores" : "no limit of cores";
  const std::string memory = limits.memory_bytes ? bytes_text(*limits.memory_bytes) + " left" : "no limit";
  return {"cgroup", State::kGood, cores + "; memory: " + memory};
}

Check check_memory() {
  const int64_t all = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return {"memory", State::kGood, bytes_text(available_memory_bytes()) + " available of " + bytes_text(all)};
}

Check check_huge_pages() {
  const std::string setting = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = setting.find('[');
  const std::string chosen = begin == std::string::npos ? "" : setting.substr(begin + 1, setting.find(']') - begin - 1);
  if (chosen == "always" || chosen == "madvise") return {"huge pages", State::kGood, "transparent, " + chosen};
  return {"huge pages", State::kRemark,
          "transparent huge pages are " + (chosen.empty() ? std::string("not there") : "\"" + chosen + "\"") +
              "; with \"madvise\" memory is read faster"};
}

Check check_bandwidth(const Options& options) {
  ThreadPool pool(options.threads > 0 ? static_cast<int>(options.threads) : usable_cores());
  Result<BandwidthProbe> probe = BandwidthProbe::create(pool);
  if (!probe.ok()) return {"bandwidth", State::kRemark, "not measured: " + probe.status().message()};
  double best = 0;
  for (int i = 0; i < kProbes; ++i) best = std::max(best, probe->measure());
  return {"bandwidth", State::kGood,
          fixed(best, 1) + " GB/s of memory read by " + counted(pool.size(), "thread") + "; decoding is bound by it"};
}

Check check_port(const Options& options) {
  const std::string where = options.host + ":" + std::to_string(options.port);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  if (inet_pton(AF_INET, options.host.c_str(), &address.sin_addr) != 1) {
    return {"port", State::kGood, where + " (not tried: no IPv4 address)"};
  }
  const int socket_fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool free =
      ::bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(socket_fd, 1) == 0;
  const int error = errno;
  ::close(socket_fd);
  if (free) return {"port", State::kGood, where + " is free"};
  return {"port", State::kStops, where + " cannot be listened on: " + std::strerror(error) + "; --port takes another"};
}

Check check_cache(const Options& options) {
  const Result<std::string> folder = model_folder(options);
  if (!folder.ok()) return {"cache", State::kRemark, folder.status().message()};
  const auto models = static_cast<int64_t>(local_models(*folder).size());
  std::error_code error;
  std::filesystem::path there = *folder;  // or what is above it, until something is there
  while (!there.empty() && !std::filesystem::exists(there, error) && there.has_parent_path())
    there = there.parent_path();
  struct statvfs disk {};
  std::string text = *folder + ": " + counted(models, "model");
  if (statvfs(there.c_str(), &disk) == 0) {
    text += ", " + bytes_text(static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize)) + " free";
  }
  if (::access(there.c_str(), W_OK) == 0) return {"cache", State::kGood, std::move(text)};
  return {"cache", State::kRemark, text + "; cannot be written, so nothing can be fetched (--cache names another)"};
}

Check check_model(const Options& options) {
  const Result<std::string> path = find_local_model(options);
  if (!path.ok()) return {"model", State::kStops, path.status().message()};
  if (path->empty()) {
    const CatalogueEntry* entry = find_in_catalogue(options.model);
    if (entry == nullptr) return {"model", State::kStops, unknown_model(options.model, options).message()};
    return {"model", State::kRemark,
            options.model + " is not here yet; it is fetched when it is used (" + bytes_text(entry->bytes) + ")"};
  }
  const auto generator = Generator::open(model_options(options, *path));
  if (!generator.ok()) return {"model", State::kStops, generator.status().message()};
  const MemoryPlan& plan = (*generator)->memory_plan();
  const std::string text = options.model + ", " + plan_text(plan);
  if (plan.fits()) return {"model", State::kGood, text};
  return {"model", State::kStops, text + "; it does not fit: lower --context, or take a smaller model"};
}

}  // namespace

std::vector<Check> check_machine(const Options& options) {
  return {check_program(),     check_processor(),    check_kernels(options), check_threads(options),
          check_groups(),      check_memory(),       check_huge_pages(),     check_bandwidth(options),
          check_port(options), check_cache(options), check_model(options)};
}

}  // namespace quire
