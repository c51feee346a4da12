// What was typed in earlier chats: a file of JSON strings, one a line, that only its owner may read. Several chats may write at
// once. Any bytes may be in the file: lines that are no text are passed over. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

class HistoryFile {
 public:
  static constexpr size_t kEntries = 1000;         // kept
  static constexpr size_t kEntryBytes = 16 << 10;  // longer ones are not kept

  // Empty path: nothing is read or written.
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // Oldest first. Where the file has grown to twice the limits, it is cut to what is returned. No file: no entries.
  Result<std::vector<std::string>> load() const;
  // Creates the file, and folders above it, for the owner alone.
  Status append(const std::string& entry) const;

 private:
  Status rewrite(const std::vector<std::string>& entries) const;

  std::string path_;
};

// --history: empty: $XDG_STATE_HOME/quire/history, else ~/.local/state/quire/history; "off", or no home: empty.
std::string history_path(const std::string& option);

}  // namespace quire
