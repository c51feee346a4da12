#include "formats/safetensors_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "base/messages.h"
#include "formats/git_lfs.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 100'000;
constexpr size_t kMaxRank = 8;

struct ElementType {
  std::string_view name;
  int bits;
};
constexpr std::array<ElementType, 22> kElementTypes = {{
    {"BOOL", 8},        {"U8", 8},          {"I8", 8},      {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},        {"F32", 32},    {"I64", 64},    {"U64", 64},    {"F64", 64},
    {"C64", 64},        {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6},
}};

struct HeaderEntry {
  SafetensorsEntry tensor;
  std::vector<uint64_t> offsets;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

// Builds the entries from the parser's events, so that memory stays in proportion to the header. Accepts exactly
// {name: {"dtype": string, "shape": [integers], "data_offsets": [integers]}, "__metadata__": {string: string}}.
class HeaderHandler {
 public:
  std::vector<HeaderEntry>& entries() { return entries_; }
  const std::string& problem() const { return problem_; }

  bool null() { return misplaced(); }
  bool boolean(bool) { return misplaced(); }
  bool number_integer(int64_t) { return misplaced(); }
  bool number_float(double, const std::string&) { return misplaced(); }
  bool binary(Json::binary_t&) { return misplaced(); }

  bool number_unsigned(uint64_t number) {
    if (place_ == Place::kShape) {
      auto& shape = entries_.back().tensor.shape;
      if (shape.size() == kMaxRank || number > static_cast<uint64_t>(INT64_MAX)) return fail("has an impossible shape");
      shape.push_back(static_cast<int64_t>(number));
      return true;
    }
    if (place_ == Place::kOffsets) {
      if (entries_.back().offsets.size() == 2) return fail("has more than two data offsets");
      entries_.back().offsets.push_back(number);
      return true;
    }
    return misplaced();
  }
  bool string(std::string& text) {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || field_ != Field::kDtype) return misplaced();
    entries_.back().tensor.dtype = std::move(text);
    return true;
  }
  bool start_object(size_t) {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
    } else {
      return misplaced();
    }
    return true;
  }
  bool end_object() {
    if (place_ == Place::kTensor) {
      const HeaderEntry& entry = entries_.back();
      if (!entry.has_dtype || !entry.has_shape || !entry.has_offsets || entry.offsets.size() != 2) {
        return fail("lacks a dtype, a shape or two data offsets");
      }
    }
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }
  bool start_array(size_t) {
    if (place_ == Place::kTensor && field_ == Field::kShape) {
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && field_ == Field::kOffsets) {
      place_ = Place::kOffsets;
    } else {
      return misplaced();
    }
    return true;
  }
  bool end_array() {
    place_ = Place::kTensor;
    return true;
  }
  bool key(std::string& name) {
    if (place_ == Place::kTop) return begin_entry(name);
    if (place_ == Place::kMetadata) return metadata_keys_.insert(std::move(name)).second || fail("has a key twice");
    HeaderEntry& entry = entries_.back();
    if (name == "dtype") {
      field_ = Field::kDtype;
      return !std::exchange(entry.has_dtype, true) || fail("has its dtype twice");
    }
    if (name == "shape") {
      field_ = Field::kShape;
      return !std::exchange(entry.has_shape, true) || fail("has its shape twice");
    }
    if (name == "data_offsets") {
      field_ = Field::kOffsets;
      return !std::exchange(entry.has_offsets, true) || fail("has its data offsets twice");
    }
    return fail("has the unknown field " + quote(name));
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    problem_ = "the header is not valid JSON (near byte " + std::to_string(position) + " of it)";
    return false;
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kTensor, kShape, kOffsets };
  enum class Field { kDtype, kShape, kOffsets };

  bool begin_entry(std::string& name) {
    in_metadata_ = name == "__metadata__";
    if (!names_.insert(name).second) {
      problem_ = "the header has the key " + quote(name) + " twice";
      return false;
    }
    if (in_metadata_) return true;
    if (entries_.size() == kMaxTensors) {
      problem_ = "the header holds more than " + std::to_string(kMaxTensors) + " tensors";
      return false;
    }
    entries_.emplace_back().tensor.name = std::move(name);
    return true;
  }
  bool fail(const std::string& what) {
    problem_ =
        (in_metadata_ ? std::string("__metadata__") : "tensor " + quote(entries_.back().tensor.name)) + " " + what;
    return false;
  }
  bool misplaced() {
    if (place_ == Place::kOutside || (entries_.empty() && !in_metadata_)) {
      problem_ = "the header is not an object of tensors";
      return false;
    }
    return fail("has a value of the wrong kind");
  }

  std::vector<HeaderEntry> entries_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
  Place place_ = Place::kOutside;
  Field field_ = Field::kDtype;
  bool in_metadata_ = false;
  std::string problem_;
};

// Bytes of a tensor, or an error when the element type is unknown or the product does not fit.
Result<uint64_t> tensor_bytes(const SafetensorsEntry& tensor) {
  const auto* type = std::ranges::find(kElementTypes, tensor.dtype, &ElementType::name);
  if (type == kElementTypes.end()) {
    return unsupported("tensor " + quote(tensor.name) + " has the unknown dtype " + quote(tensor.dtype));
  }
  const bool empty = std::ranges::find(tensor.shape, 0) != tensor.shape.end();
  unsigned __int128 bits = empty ? 0 : static_cast<unsigned>(type->bits);
  for (const int64_t size : tensor.shape) {
    bits *= static_cast<uint64_t>(size);
    if (bits >> 64 != 0) return corrupt("tensor " + quote(tensor.name) + " has an impossible shape");
  }
  if (bits % 8 != 0) return corrupt("tensor " + quote(tensor.name) + " does not fill whole bytes");
  return static_cast<uint64_t>(bits / 8);
}

// Tensors must cover the data without hole or overlap, which also rules out anything outside it.
Status place_tensors(std::vector<HeaderEntry>& entries, std::span<const std::byte> data, SafetensorsFile& out) {
  std::ranges::sort(entries, {}, [](const HeaderEntry& e) { return std::pair(e.offsets[0], e.offsets[1]); });
  uint64_t position = 0;
  for (HeaderEntry& entry : entries) {
    const uint64_t begin = entry.offsets[0], end = entry.offsets[1];
    if (begin != position || end < begin || end > data.size()) {
      return corrupt("tensor " + quote(entry.tensor.name) + " at " + std::to_string(begin) + ".." +
                     std::to_string(end) + " leaves a hole, overlaps another or reaches past the " +
                     std::to_string(data.size()) + " bytes of data: the file is truncated or damaged");
    }
    QUIRE_ASSIGN_OR_RETURN(const uint64_t bytes, tensor_bytes(entry.tensor));
    if (bytes != end - begin) {
      return corrupt("tensor " + quote(entry.tensor.name) + " of shape " + shape_text(entry.tensor.shape) +
                     " and type " + entry.tensor.dtype + " takes " + std::to_string(bytes) + " bytes, not the " +
                     std::to_string(end - begin) + " of its offsets");
    }
    entry.tensor.data = data.data() + begin;
    entry.tensor.bytes = static_cast<int64_t>(bytes);
    out.tensors.push_back(std::move(entry.tensor));
    position = end;
  }
  if (position != data.size()) {
    return corrupt(std::to_string(data.size() - position) + " bytes follow the last tensor");
  }
  return {};
}

Status parse(SafetensorsFile& out) {
  const std::span<const std::byte> bytes = out.file.bytes();
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes) return corrupt("is too short for a safetensors file");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes < 2 || header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - sizeof header_bytes) {
    return corrupt("claims a header of " + std::to_string(header_bytes) +
                   " bytes: not a safetensors file, or truncated");
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes,
                                static_cast<size_t>(header_bytes));
  if (header.front() != '{') return corrupt("the header does not start with \"{\"");
  HeaderHandler handler;
  if (!Json::sax_parse(header, &handler)) return corrupt(handler.problem());
  return place_tensors(handler.entries(), bytes.subspan(sizeof header_bytes + static_cast<size_t>(header_bytes)), out);
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  QUIRE_RETURN_IF_ERROR(refuse_git_lfs_pointer(file.bytes(), path));
  SafetensorsFile out{std::move(file), {}};
  const Status status = parse(out);
  QUIRE_RETURN_IF_ERROR(out.file.unchanged());  // first: it may be why
  if (!status.ok()) return Status(status.code(), path + ": " + status.message());
  return out;
}

}  // namespace quire
