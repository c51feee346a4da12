#include "hub/local_models.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <system_error>

#include "hub/catalogue.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".gguf";

// "model-00001-of-00003" is a part of "model".
std::string name_of_stem(std::string_view stem) {
  constexpr size_t kPart = std::string_view("-00001-of-00003").size();
  if (stem.size() <= kPart) return std::string(stem);
  const std::string_view part = stem.substr(stem.size() - kPart);
  const auto digits = [&](size_t at) {
    return std::all_of(part.begin() + at, part.begin() + at + 5, [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool split = part[0] == '-' && digits(1) && part.substr(6, 4) == "-of-" && digits(10);
  return std::string(split ? stem.substr(0, stem.size() - kPart) : stem);
}

std::string shown_name(const std::string& file_name) {
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.file_name == file_name) return std::string(entry.name);
  }
  return name_of_stem(std::string_view(file_name).substr(0, file_name.size() - kSuffix.size()));
}

int64_t seconds_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

void add_file(const fs::path& path, LocalModel& model) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (!error) model.bytes += static_cast<int64_t>(bytes);
  const fs::file_time_type time = fs::last_write_time(path, error);
  if (!error) model.changed_s = std::max(model.changed_s, seconds_of(time));
}

void add_folder(const fs::path& path, LocalModel& model) {
  model.files = {path.string()};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (entry->is_regular_file(gone)) add_file(entry->path(), model);
  }
}

}  // namespace

std::vector<LocalModel> local_models(const std::string& folder) {
  std::map<std::string, LocalModel> models;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    std::error_code gone;
    if (file.starts_with('.')) continue;
    if (entry->is_directory(gone)) {
      if (!fs::exists(entry->path() / "config.json", gone)) continue;
      add_folder(entry->path(), models[file]);
    } else if (file.ends_with(kSuffix) && entry->is_regular_file(gone)) {
      LocalModel& model = models[shown_name(file)];
      model.files.push_back(entry->path().string());
      add_file(entry->path(), model);
    }
  }
  std::vector<LocalModel> list;
  for (auto& [name, model] : models) {
    std::sort(model.files.begin(), model.files.end());
    model.name = name;
    model.path = model.files.front();
    list.push_back(std::move(model));
  }
  return list;
}

std::optional<LocalModel> find_local(const std::string& folder, std::string_view name) {
  for (LocalModel& model : local_models(folder)) {
    if (model.name == name) return std::move(model);
  }
  return std::nullopt;
}

Status remove_local(const LocalModel& model) {
  for (const std::string& file : model.files) {
    std::error_code error;
    fs::is_symlink(fs::symlink_status(file, error)) ? fs::remove(file, error) : fs::remove_all(file, error);
    if (error) return io_error(file + ": cannot be removed: " + error.message());
  }
  return {};
}

}  // namespace quire
