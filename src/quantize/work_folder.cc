#include "quantize/work_folder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/mapped_file.h"
#include "base/messages.h"
#include "formats/partial_file.h"
#include "formats/safetensors_file.h"
#include "formats/safetensors_writer.h"

namespace quire {
namespace {

constexpr const char* kSettingsFile = "/settings.txt";

std::string layer_file(const std::string& folder, size_t layer) {
  return folder + "/layer-" + std::to_string(layer) + ".safetensors";
}
std::string residual_file(const std::string& folder, size_t layer) {
  return folder + "/residual-" + std::to_string(layer) + ".safetensors";
}

// Names of files that this folder is made of, whole or partial.
bool is_own(std::string name) {
  if (name.ends_with(kPartialSuffix)) name.resize(name.size() - kPartialSuffix.size());
  return "/" + name == kSettingsFile ||
         ((name.starts_with("layer-") || name.starts_with("residual-")) && name.ends_with(".safetensors"));
}

// The first file in the folder that somebody else put there.
std::string foreign_file(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!is_own(entry.path().filename().string())) return entry.path().string();
  }
  return {};
}

// Tensors that point into a layer's result.
class Items {
 public:
  template <typename T>
  void add(const std::string& name, const char* dtype, std::span<const T> values) {
    plan_.push_back({name, dtype, {static_cast<int64_t>(values.size())}});
    bytes_.push_back(std::as_bytes(values));
  }
  template <typename T>
  void add(const std::string& name, const char* dtype, const std::vector<T>& values) {
    add(name, dtype, std::span(values));
  }
  Status write(const std::string& path) const {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    QUIRE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::create(path, plan_));
    for (size_t i = 0; i < plan_.size(); ++i) QUIRE_RETURN_IF_ERROR(writer.write(plan_[i].name, 0, bytes_[i]));
    return writer.finish();
  }

 private:
  std::vector<SafetensorsPlan> plan_;
  std::vector<std::span<const std::byte>> bytes_;
};

template <typename T>
std::vector<T> values_of(const SafetensorsEntry& entry) {
  std::vector<T> values(static_cast<size_t>(entry.bytes) / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), entry.data, values.size() * sizeof(T));
  return values;
}

// One linear's part of a layer's file: "3.codes". Its shape is stored as numbers.
void add_linear(Items& items, std::vector<std::vector<int32_t>>& shapes, size_t index, const QuantizedRows& rows) {
  const std::string prefix = std::to_string(index) + ".";
  const QuantizedMatrix& m = rows.codes;
  items.add(prefix + "blocks", "U8", rows.blocks);
  items.add(prefix + "codes", "U8", m.codes);
  items.add(prefix + "scales", "F32", m.scales);
  items.add(prefix + "zeros", "U8", m.zeros);
  items.add(prefix + "group_of", "I32", m.group_of);
  shapes.push_back({m.bits, static_cast<int32_t>(m.n), static_cast<int32_t>(m.k), static_cast<int32_t>(m.group)});
  items.add(prefix + "shape", "I32", shapes.back());
}

void read_linear(QuantizedRows& rows, std::string_view part, const SafetensorsEntry& entry) {
  QuantizedMatrix& m = rows.codes;
  if (part == "blocks") rows.blocks = values_of<std::byte>(entry);
  if (part == "codes") m.codes = values_of<uint8_t>(entry);
  if (part == "scales") m.scales = values_of<float>(entry);
  if (part == "zeros") m.zeros = values_of<uint8_t>(entry);
  if (part == "group_of") m.group_of = values_of<int32_t>(entry);
  if (part != "shape") return;
  const std::vector<int32_t> shape = values_of<int32_t>(entry);
  if (shape.size() != 4) return;
  m.bits = shape[0];
  m.n = shape[1];
  m.k = shape[2];
  m.group = shape[3];
}

}  // namespace

Result<WorkFolder> WorkFolder::open(const std::string& path, const std::string& settings) {
  WorkFolder folder;
  folder.path_ = path;
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (error) return io_error(path + ": the folder for unfinished work cannot be made: " + error.message());
  // Everything in the folder is removed in the end.
  if (const std::string foreign = foreign_file(path); !foreign.empty()) {
    return invalid_argument(path + " is where unfinished work is kept, but holds " + foreign +
                            ", which is none; move it away, or choose another output");
  }
  if (!std::filesystem::exists(path + kSettingsFile, error)) {
    QUIRE_RETURN_IF_ERROR(write_text_file(path + kSettingsFile, settings));
    return folder;
  }
  const Result<MappedFile> stored = MappedFile::open(path + kSettingsFile);
  if (!stored.ok()) return folder.damaged(stored.status());
  const std::string before(reinterpret_cast<const char*>(stored->bytes().data()), stored->bytes().size());
  if (const Status status = stored->unchanged(); !status.ok()) return folder.damaged(status);
  if (before != settings) {
    return invalid_argument(path + " holds the unfinished work of a run with other settings or another input (" +
                            quote(std::string_view(before).substr(0, before.find('\n'))) +
                            "); repeat that one to go on with it, or remove the folder to start anew");
  }
  while (std::filesystem::exists(layer_file(path, folder.layers_))) ++folder.layers_;
  return folder;
}

Status WorkFolder::store(size_t layer, const QuantizedLayer& result, std::span<const float> residual) {
  // The residual stream first: a layer counts as done when its own file is there.
  if (!residual.empty()) {
    Items stream;
    stream.add("residual", "F32", residual);
    QUIRE_RETURN_IF_ERROR(stream.write(residual_file(path_, layer)));
  }
  Items items;
  std::vector<std::vector<int32_t>> shapes;
  shapes.reserve(result.linears.size());
  for (size_t i = 0; i < result.linears.size(); ++i) add_linear(items, shapes, i, result.linears[i]);
  for (const auto& [name, values] : result.vectors) items.add("vector." + name, "F32", values);
  QUIRE_RETURN_IF_ERROR(items.write(layer_file(path_, layer)));
  layers_ = layer + 1;
  std::error_code ignored;
  if (layer > 0) std::filesystem::remove(residual_file(path_, layer - 1), ignored);
  return {};
}

Status WorkFolder::damaged(const Status& status) const {
  return Status(status.code(), status.message() + "; remove " + path_ + " to start anew");
}

Result<QuantizedLayer> WorkFolder::load(size_t layer) const {
  const std::string path = layer_file(path_, layer);
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok()) return damaged(file.status());
  QuantizedLayer result;
  constexpr std::string_view kVector = "vector.";
  for (const SafetensorsEntry& entry : file->tensors) {
    if (entry.name.starts_with(kVector)) {
      result.vectors.emplace(entry.name.substr(kVector.size()), values_of<float>(entry));
      continue;
    }
    const size_t dot = entry.name.find('.');
    const auto index = static_cast<size_t>(entry.name[0] - '0');
    if (dot != 1 || index >= result.linears.size())
      return damaged(corrupt(path + ": tensor " + quote(entry.name) + " is not one of a layer"));
    read_linear(result.linears[index], std::string_view(entry.name).substr(dot + 1), entry);
  }
  if (const Status status = file->file.unchanged(); !status.ok()) return damaged(status);
  return result;
}

Status WorkFolder::load_residual(std::span<float> out) const {
  const std::string path = residual_file(path_, layers_ - 1);
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.ok()) return damaged(file.status());
  if (file->tensors.size() != 1 || file->tensors[0].bytes != static_cast<int64_t>(out.size_bytes()))
    return damaged(corrupt(path + ": not the residual stream of this text"));
  std::memcpy(out.data(), file->tensors[0].data, out.size_bytes());
  if (const Status status = file->file.unchanged(); !status.ok()) return damaged(status);
  if (!std::ranges::all_of(out, [](float value) { return std::isfinite(value); }))
    return damaged(corrupt(path + ": holds an infinity or NaN"));
  return {};
}

Status WorkFolder::remove() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
    if (is_own(entry.path().filename().string())) std::filesystem::remove(entry.path(), error);
    if (error) break;
  }
  if (!error) std::filesystem::remove(path_, error);
  if (error) return io_error(path_ + ": the folder of unfinished work cannot be removed: " + error.message());
  return {};
}

}  // namespace quire
