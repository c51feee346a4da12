#include "formats/gguf_writer.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;

enum ValueType : uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9, kU64 = 10, kI64 = 11 };

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void add(std::string& out, T value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }

void add_text(std::string& out, std::string_view text) {
  add<uint64_t>(out, text.size());
  out.append(text);
}

template <typename Narrow, typename Wide>
bool fits(Wide value) {
  return value >= std::numeric_limits<Narrow>::min() && value <= std::numeric_limits<Narrow>::max();
}

// One number, or the elements of an array, in the narrower type where all fit.
template <typename Narrow, typename Wide>
void add_integers(std::string& out, ValueType narrow, ValueType wide, std::span<const Wide> values, bool array) {
  const bool all_fit = std::ranges::all_of(values, [](Wide value) { return fits<Narrow>(value); });
  if (array) add(out, kArray);
  add(out, all_fit ? narrow : wide);
  if (array) add<uint64_t>(out, values.size());
  for (const Wide value : values) {
    if (all_fit) {
      add(out, static_cast<Narrow>(value));
    } else {
      add(out, value);
    }
  }
}

struct Encoder {
  std::string& out;

  void begin_array(ValueType type, size_t count) const {
    add(out, kArray);
    add(out, type);
    add<uint64_t>(out, count);
  }
  void operator()(bool value) const {
    add(out, kBool);
    add<uint8_t>(out, value);
  }
  void operator()(int64_t value) const { add_integers<int32_t, int64_t>(out, kI32, kI64, std::span(&value, 1), false); }
  void operator()(uint64_t value) const {
    add_integers<uint32_t, uint64_t>(out, kU32, kU64, std::span(&value, 1), false);
  }
  void operator()(double value) const {
    add(out, kF32);
    add(out, static_cast<float>(value));
  }
  void operator()(const std::string& value) const {
    add(out, kString);
    add_text(out, value);
  }
  void operator()(const std::vector<bool>& values) const {
    begin_array(kBool, values.size());
    for (const bool value : values) add<uint8_t>(out, value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    add_integers<int32_t, int64_t>(out, kI32, kI64, values, true);
  }
  void operator()(const std::vector<uint64_t>& values) const {
    add_integers<uint32_t, uint64_t>(out, kU32, kU64, values, true);
  }
  void operator()(const std::vector<double>& values) const {
    begin_array(kF32, values.size());
    for (const double value : values) add(out, static_cast<float>(value));
  }
  void operator()(const std::vector<std::string>& values) const {
    begin_array(kString, values.size());
    for (const std::string& value : values) add_text(out, value);
  }
};

uint64_t tensor_bytes(const GgufTensorPlan& tensor) {
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= static_cast<uint64_t>(tensor.shape[i]);
  return rows * static_cast<uint64_t>(row_bytes(tensor.dtype, tensor.shape.back()));
}

}  // namespace

std::string encode_gguf_value(const MetaValue& value) {
  std::string out;
  std::visit(Encoder{out}, value);
  return out;
}

Result<GgufWriter> GgufWriter::create(const std::string& path, std::span<const GgufEntry> metadata,
                                      std::span<const GgufTensorPlan> tensors) {
  std::string head = "GGUF";
  add(head, kVersion);
  add<uint64_t>(head, tensors.size());
  add<uint64_t>(head, metadata.size());
  Places values, places;
  for (const GgufEntry& entry : metadata) {
    add_text(head, entry.key);
    QUIRE_CHECK(values.emplace(entry.key, Place{head.size(), entry.value.size()}).second);
    head += entry.value;
  }
  uint64_t next = 0;
  for (const GgufTensorPlan& tensor : tensors) {
    add_text(head, tensor.name);
    add(head, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) add(head, static_cast<uint64_t>(tensor.shape[i]));
    add(head, static_cast<uint32_t>(dtype_info(tensor.dtype).ggml_type));
    add(head, next);
    const Place place{next, tensor_bytes(tensor)};
    QUIRE_CHECK(places.emplace(tensor.name, place).second);
    next += aligned(place.bytes);
  }
  const uint64_t data_begin = aligned(head.size());
  for (auto& [name, place] : places) place.offset += data_begin;
  QUIRE_ASSIGN_OR_RETURN(PartialFile file, PartialFile::create(path, data_begin + next));
  QUIRE_RETURN_IF_ERROR(file.write(0, std::as_bytes(std::span(head))));
  return GgufWriter(std::move(file), std::move(values), std::move(places));
}

Status GgufWriter::write(std::string_view name, uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = tensors_.find(name);
  QUIRE_CHECK(found != tensors_.end() && offset <= found->second.bytes && bytes.size() <= found->second.bytes - offset);
  return file_.write(found->second.offset + offset, bytes);
}

Status GgufWriter::rewrite(std::string_view key, const std::string& value) {
  const auto found = values_.find(key);
  QUIRE_CHECK(found != values_.end() && found->second.bytes == value.size());
  return file_.write(found->second.offset, std::as_bytes(std::span(value)));
}

Status GgufWriter::finish() { return file_.finish(); }

}  // namespace quire
