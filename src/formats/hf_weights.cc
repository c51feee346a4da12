#include "formats/hf_weights.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/messages.h"
#include "formats/safetensors_index.h"
#include "formats/text_file.h"

namespace quire {
namespace {

constexpr std::string_view kWeightsFile = "model.safetensors";
constexpr std::string_view kSuffix = ".safetensors";
constexpr size_t kMaxShards = 1000;
constexpr size_t kMaxIndexBytes = size_t{32} << 20;

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// "NAME-00002-of-00005.safetensors": NAME, 2 and 5.
struct PartName {
  std::string stem;
  int part = 0, count = 0;
};

std::optional<PartName> part_name(std::string_view file) {
  constexpr size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits;
  file.remove_suffix(kSuffix.size());
  if (file.size() <= kTail) return std::nullopt;
  const std::string_view tail = file.substr(file.size() - kTail);
  const auto number = [](std::string_view digits) {
    int value = -1;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return end.ptr == digits.data() + digits.size() ? value : -1;
  };
  PartName name{std::string(file.substr(0, file.size() - kTail)), number(tail.substr(1, kDigits)),
                number(tail.substr(1 + kDigits + kOf.size()))};
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf || name.part < 1 || name.count < name.part) {
    return std::nullopt;
  }
  return name;
}

// File names that may hold a whole model or a part of one; adapters do not.
std::vector<std::string> candidates(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(kSuffix) && !name.starts_with("adapter_")) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string list;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) list += (i == 0 ? "" : ", ") + quote(names[i]);
  return names.size() > kShown ? list + ", ..." : list;
}

// The only file, or the only complete set of parts.
Result<std::vector<std::string>> names_without_index(const std::string& directory) {
  const std::vector<std::string> names = candidates(directory);
  std::vector<std::string> whole;
  std::map<std::pair<std::string, int>, std::vector<std::string>> sets;  // by stem and count
  for (const std::string& name : names) {
    const auto part = part_name(name);
    if (!part) {
      whole.push_back(name);
    } else {
      sets[{part->stem, part->count}].push_back(name);
    }
  }
  if (names.empty()) {
    return not_found(directory + ": holds neither " + std::string(kWeightsFile) + " nor " +
                     std::string(kWeightsIndexFile) +
                     " nor another safetensors file; other weight formats of Hugging "
                     "Face are not read");
  }
  if (sets.size() == 1) {
    const auto& [key, parts] = *sets.begin();
    for (int i = 1; i <= key.second; ++i) {
      if (i <= static_cast<int>(parts.size()) && part_name(parts[static_cast<size_t>(i) - 1])->part == i) continue;
      return not_found(directory + ": holds parts of a model in " + std::to_string(key.second) +
                       " safetensors files, but not part " + std::to_string(i) + "; download it again");
    }
    return parts;
  }
  if (sets.empty() && whole.size() == 1) return whole;
  return invalid_argument(directory + ": has no " + std::string(kWeightsIndexFile) +
                          ", and more than one of its files may hold the model: " + listed(names) +
                          "; leave one, or put the index beside them");
}

Result<std::vector<SafetensorsFile>> open_files(const std::string& directory, const auto& names) {
  std::vector<SafetensorsFile> files;
  for (const std::string& name : names) {
    QUIRE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(directory + "/" + name));
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::vector<SafetensorsFile>> open_indexed(const std::string& directory, const std::string& index_path) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_text_file(index_path, kMaxIndexBytes));
  QUIRE_ASSIGN_OR_RETURN(const SafetensorsIndex index, parse_safetensors_index(text, index_path));
  std::set<std::string> names;
  for (const auto& [tensor, name] : index) names.insert(name);
  if (names.size() > kMaxShards) {
    return out_of_range(index_path + ": names " + std::to_string(names.size()) + " files; at most " +
                        std::to_string(kMaxShards) + " are read");
  }
  QUIRE_ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, open_files(directory, names));
  std::set<std::pair<std::string_view, std::string_view>> held;  // tensor, file name
  auto name = names.begin();
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsEntry& tensor : file.tensors) held.emplace(tensor.name, *name);
    ++name;
  }
  for (const auto& [tensor, file] : index) {
    if (!held.contains({tensor, file})) {
      return corrupt(index_path + ": says that " + quote(file) + " holds tensor " + quote(tensor) +
                     ", but it does not");
    }
  }
  return files;
}

}  // namespace

bool has_hf_weights(const std::string& directory) {
  return exists(directory + "/" + std::string(kWeightsIndexFile)) || !candidates(directory).empty();
}

Result<std::vector<SafetensorsFile>> open_hf_weights(const std::string& directory, std::vector<std::string>* remarks) {
  const std::string index_path = directory + "/" + std::string(kWeightsIndexFile);
  if (exists(directory + "/" + std::string(kWeightsFile))) {
    if (exists(index_path)) {
      remarks->push_back(directory + ": " + std::string(kWeightsFile) + " is read, and not the files that " +
                         std::string(kWeightsIndexFile) + " names");
    }
    return open_files(directory, std::vector<std::string>{std::string(kWeightsFile)});
  }
  if (exists(index_path)) return open_indexed(directory, index_path);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_without_index(directory));
  remarks->push_back(directory + ": without " + std::string(kWeightsIndexFile) + ", the weights are taken from " +
                     listed(names));
  return open_files(directory, names);
}

}  // namespace quire
