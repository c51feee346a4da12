// The models in the cache folder, by the names that --model takes: those of the catalogue, and what else lies there: GGUF files by
// their names without ".gguf" (split ones as one), folders with a config.json by theirs. Pure but for reading the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

struct LocalModel {
  std::string name;
  std::string path;                // of the folder, or of the first file
  std::vector<std::string> files;  // all of them; of a folder: itself
  int64_t bytes = 0;
  int64_t changed_s = 0;  // since the epoch: the latest change
};

// By name. No folder: none. Hidden entries, and what a pull has not finished, are left out.
std::vector<LocalModel> local_models(const std::string& folder);

std::optional<LocalModel> find_local(const std::string& folder, std::string_view name);

// Deletes its files, or the folder with all that is in it. A link is deleted, not what it points to.
Status remove_local(const LocalModel& model);

}  // namespace quire
