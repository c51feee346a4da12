#include "cli/history_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/input.h"
#include "json/json_value.h"
#include "json/json_writer.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestFile = 64 << 20;

std::string line_of(const std::string& entry) {
  std::string line;
  append_json_string(entry, &line);
  return line + "\n";
}

// A terminal would obey what is below blank, but for line breaks and tabs.
bool is_harmless(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) return false;
  }
  return !text.empty();
}

Status write_file(const std::string& path, int flags, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (file < 0) return io_error(path + ": cannot be opened: " + std::strerror(errno));
  const ssize_t written = ::write(file, text.data(), text.size());
  const int error = errno;
  ::close(file);
  if (written == static_cast<ssize_t>(text.size())) return {};
  return io_error(path + ": cannot be written: " + (written < 0 ? std::strerror(error) : "the disk is full"));
}

}  // namespace

Result<std::vector<std::string>> HistoryFile::load() const {
  std::error_code error;
  if (path_.empty() || !fs::exists(path_, error)) return std::vector<std::string>();
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path_, kLargestFile));
  std::vector<std::string> entries;
  size_t lines = 0;
  for (size_t begin = 0; begin < text.size(); ++lines) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Result<JsonValue> value = JsonValue::parse(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    const std::string* entry = value.ok() ? value->as<std::string>() : nullptr;
    if (entry != nullptr && entry->size() <= kEntryBytes && is_harmless(*entry)) entries.push_back(*entry);
  }
  if (entries.size() > kEntries) entries.erase(entries.begin(), entries.end() - kEntries);
  if (lines > 2 * kEntries) QUIRE_RETURN_IF_ERROR(rewrite(entries));
  return entries;
}

Status HistoryFile::append(const std::string& entry) const {
  if (path_.empty() || entry.size() > kEntryBytes || !is_harmless(entry)) return {};
  std::error_code error;
  const fs::path folder = fs::path(path_).parent_path();
  if (!folder.empty() && !fs::exists(folder, error)) {
    fs::create_directories(folder, error);
    if (error) return io_error(folder.string() + ": cannot be created: " + error.message());
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  return write_file(path_, O_APPEND, line_of(entry));
}

Status HistoryFile::rewrite(const std::vector<std::string>& entries) const {
  std::string text;
  for (const std::string& entry : entries) text += line_of(entry);
  const std::string fresh = path_ + ".new";
  QUIRE_RETURN_IF_ERROR(write_file(fresh, O_TRUNC, text));
  if (std::rename(fresh.c_str(), path_.c_str()) != 0)
    return io_error(path_ + ": cannot be replaced: " + std::strerror(errno));
  return {};
}

std::string history_path(const std::string& option) {
  if (option == "off") return {};
  if (!option.empty()) return option;
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return std::string(state) + "/quire/history";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::string(home) + "/.local/state/quire/history" : std::string();
}

}  // namespace quire
