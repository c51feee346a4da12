#include "formats/safetensors_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {

constexpr uint64_t kDataAlignment = 8;

uint64_t element_bytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, uint64_t> kSizes[] = {{"I64", 8},  {"I32", 4}, {"F32", 4},
                                                              {"BF16", 2}, {"F16", 2}, {"U8", 1}};
  const auto* found = std::ranges::find(kSizes, dtype, [](const auto& each) { return each.first; });
  QUIRE_CHECK(found != std::end(kSizes));
  return found->second;
}

uint64_t tensor_bytes(const SafetensorsPlan& tensor) {
  uint64_t bytes = element_bytes(tensor.dtype);
  for (const int64_t size : tensor.shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, std::vector<SafetensorsPlan> tensors) {
  std::ranges::sort(tensors, [](const SafetensorsPlan& a, const SafetensorsPlan& b) {
    const uint64_t a_size = element_bytes(a.dtype), b_size = element_bytes(b.dtype);
    return a_size != b_size ? a_size > b_size : a.name < b.name;
  });
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};  // transformers refuses a file that does not say so
  std::map<std::string, Place, std::less<>> places;
  uint64_t position = 0;
  for (const SafetensorsPlan& tensor : tensors) {
    const Place place{.offset = position, .bytes = tensor_bytes(tensor)};
    position += place.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {place.offset, position}}};
    QUIRE_CHECK(places.emplace(tensor.name, place).second);
  }
  std::string text = header.dump();
  text.append((kDataAlignment - text.size() % kDataAlignment) % kDataAlignment, ' ');
  const uint64_t header_bytes = text.size();
  const uint64_t data_begin = sizeof header_bytes + header_bytes;
  for (auto& [name, place] : places) place.offset += data_begin;

  QUIRE_ASSIGN_OR_RETURN(PartialFile file, PartialFile::create(path, data_begin + position));
  QUIRE_RETURN_IF_ERROR(file.write(0, std::as_bytes(std::span(&header_bytes, 1))));
  QUIRE_RETURN_IF_ERROR(file.write(sizeof header_bytes, std::as_bytes(std::span(text))));
  return SafetensorsWriter(std::move(file), std::move(places));
}

Status SafetensorsWriter::write(std::string_view name, uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = places_.find(name);
  QUIRE_CHECK(found != places_.end() && offset <= found->second.bytes && bytes.size() <= found->second.bytes - offset);
  return file_.write(found->second.offset + offset, bytes);
}

Status SafetensorsWriter::finish() { return file_.finish(); }

}  // namespace quire
