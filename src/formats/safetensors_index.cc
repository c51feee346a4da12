#include "formats/safetensors_index.h"

#include <nlohmann/json.hpp>

#include "base/messages.h"
#include "json/json_check.h"

namespace quire {
namespace {

bool is_plain_file_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find_first_of(std::string("/\\\0", 3)) == std::string::npos &&
         !name.starts_with('.');
}

}  // namespace

Result<SafetensorsIndex> parse_safetensors_index(const std::string& text, const std::string& where) {
  QUIRE_RETURN_IF_ERROR(check_json_object(text, where));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) return corrupt(where + ": has no \"weight_map\" object");
  SafetensorsIndex index;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return corrupt(where + ": the file of tensor " + quote(tensor) + " is not a string");
    const auto& name = file.get_ref<const std::string&>();
    if (!is_plain_file_name(name)) {
      return corrupt(where + ": the file of tensor " + quote(tensor) + ", " + quote(name) +
                     ", is not the plain name of a .safetensors file");
    }
    index.emplace(tensor, name);
  }
  return index;
}

}  // namespace quire
