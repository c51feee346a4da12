#include "formats/gguf_file.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

#include "base/messages.h"
#include "formats/byte_reader.h"
#include "formats/git_lfs.h"

namespace quire {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxStringBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxArrayElements = uint64_t{1} << 24;
constexpr uint64_t kMaxTensors = 100000;
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint64_t kMaxDimension = uint64_t{1} << 40;
constexpr uint64_t kDefaultAlignment = 32;
// Fewest bytes a metadata entry (key length, one letter, type, value) and a tensor entry can take.
constexpr uint64_t kMinEntryBytes = 14;
constexpr uint64_t kMinTensorBytes = 33;

enum class ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

uint64_t min_value_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    default:
      return 8;
  }
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

class Parser {
 public:
  explicit Parser(GgufFile& out) : out_(out), reader_(out.file.bytes()) {}

  Status parse(bool with_tensors) {
    QUIRE_RETURN_IF_ERROR(parse_header());
    QUIRE_RETURN_IF_ERROR(parse_metadata());
    if (with_tensors) QUIRE_RETURN_IF_ERROR(parse_tensors());
    return {};
  }

 private:
  Status error(const std::string& what) const { return corrupt(out_.file.path() + ": " + what); }
  Status truncated(const std::string& what) const {
    return error("the file ends inside " + what + ", at byte " + std::to_string(reader_.position()) + " of " +
                 std::to_string(out_.file.bytes().size()));
  }

  Status parse_header() {
    uint32_t magic = 0;
    if (!reader_.read(&magic) || magic != kMagic) return error("is not a GGUF file: it does not start with \"GGUF\"");
    if (!reader_.read(&out_.version)) return truncated("the header");
    if ((out_.version & 0xffff) == 0) return unsupported(out_.file.path() + ": is a big-endian GGUF file");
    if (out_.version != 2 && out_.version != 3) {
      return unsupported(out_.file.path() + ": has GGUF version " + std::to_string(out_.version) +
                         "; versions 2 and 3 are supported");
    }
    if (!reader_.read(&tensor_count_) || !reader_.read(&entry_count_)) return truncated("the header");
    // Written so that hostile counts cannot overflow the comparison.
    if (entry_count_ > reader_.remaining() / kMinEntryBytes) {
      return error("claims " + std::to_string(entry_count_) + " metadata entries, more than its size allows");
    }
    if (tensor_count_ > kMaxTensors || tensor_count_ > reader_.remaining() / kMinTensorBytes) {
      return error("claims " + std::to_string(tensor_count_) + " tensors, more than its size or quire allows");
    }
    return {};
  }

  // ---- Metadata ----

  Status parse_metadata() {
    for (uint64_t i = 0; i < entry_count_; ++i) {
      const std::string nth = "metadata entry " + std::to_string(i + 1);
      uint64_t length = 0;
      std::string_view key;
      if (!reader_.read(&length)) return truncated(nth);
      if (length > kMaxKeyBytes || !reader_.read_text(length, &key)) {
        return error(nth + " has a key of " + std::to_string(length) + " bytes");
      }
      if (!is_plain_name(key)) return error(nth + " has the key " + quote(key) + ", which is empty or not plain ASCII");
      const size_t value_begin = reader_.position();
      uint32_t type = 0;
      if (!reader_.read(&type)) return truncated("metadata key " + quote(key));
      MetaValue value;
      QUIRE_RETURN_IF_ERROR(parse_value(key, type, &value));
      const auto* bytes = reinterpret_cast<const char*>(out_.file.bytes().data());
      out_.entries.push_back({key, {bytes + value_begin, reader_.position() - value_begin}});
      if (!out_.metadata.emplace(key, std::move(value)).second)
        return error("metadata key " + quote(key) + " occurs twice");
    }
    return {};
  }

  Status parse_value(std::string_view key, uint32_t type, MetaValue* value) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::kU8:
        return parse_scalar<uint8_t, uint64_t>(key, value);
      case ValueType::kI8:
        return parse_scalar<int8_t, int64_t>(key, value);
      case ValueType::kU16:
        return parse_scalar<uint16_t, uint64_t>(key, value);
      case ValueType::kI16:
        return parse_scalar<int16_t, int64_t>(key, value);
      case ValueType::kU32:
        return parse_scalar<uint32_t, uint64_t>(key, value);
      case ValueType::kI32:
        return parse_scalar<int32_t, int64_t>(key, value);
      case ValueType::kF32:
        return parse_scalar<float, double>(key, value);
      case ValueType::kBool:
        return parse_bool(key, value);
      case ValueType::kString:
        return parse_string(key, &value->emplace<std::string>());
      case ValueType::kArray:
        return parse_array(key, value);
      case ValueType::kU64:
        return parse_scalar<uint64_t, uint64_t>(key, value);
      case ValueType::kI64:
        return parse_scalar<int64_t, int64_t>(key, value);
      case ValueType::kF64:
        return parse_scalar<double, double>(key, value);
    }
    return error("metadata key " + quote(key) + " has the unknown value type " + std::to_string(type));
  }

  template <typename Stored, typename Widened>
  Status parse_scalar(std::string_view key, MetaValue* value) {
    Stored stored{};
    if (!reader_.read(&stored)) return truncated("metadata key " + quote(key));
    *value = static_cast<Widened>(stored);
    return {};
  }

  Status parse_bool(std::string_view key, MetaValue* value) {
    uint8_t stored = 0;
    if (!reader_.read(&stored)) return truncated("metadata key " + quote(key));
    if (stored > 1) return error("metadata key " + quote(key) + " is a boolean with value " + std::to_string(stored));
    *value = stored == 1;
    return {};
  }

  Status parse_string(std::string_view key, std::string* value) {
    uint64_t length = 0;
    std::string_view text;
    if (!reader_.read(&length)) return truncated("metadata key " + quote(key));
    if (length > kMaxStringBytes || !reader_.read_text(length, &text)) {
      return error("metadata key " + quote(key) + " claims a string of " + std::to_string(length) + " bytes, but " +
                   std::to_string(reader_.remaining()) + " are left");
    }
    *value = text;
    return {};
  }

  Status parse_array(std::string_view key, MetaValue* value) {
    uint32_t type = 0;
    uint64_t count = 0;
    if (!reader_.read(&type) || !reader_.read(&count)) return truncated("metadata key " + quote(key));
    const auto element = static_cast<ValueType>(type);
    if (element == ValueType::kArray) return error("metadata key " + quote(key) + " is an array of arrays");
    if (count > kMaxArrayElements || count > reader_.remaining() / min_value_bytes(element)) {
      return error("metadata key " + quote(key) + " claims an array of " + std::to_string(count) + " elements, but " +
                   std::to_string(reader_.remaining()) + " bytes are left");
    }
    switch (element) {
      case ValueType::kU8:
        return parse_numbers<uint8_t, uint64_t>(key, count, value);
      case ValueType::kI8:
        return parse_numbers<int8_t, int64_t>(key, count, value);
      case ValueType::kU16:
        return parse_numbers<uint16_t, uint64_t>(key, count, value);
      case ValueType::kI16:
        return parse_numbers<int16_t, int64_t>(key, count, value);
      case ValueType::kU32:
        return parse_numbers<uint32_t, uint64_t>(key, count, value);
      case ValueType::kI32:
        return parse_numbers<int32_t, int64_t>(key, count, value);
      case ValueType::kF32:
        return parse_numbers<float, double>(key, count, value);
      case ValueType::kBool:
        return parse_bools(key, count, value);
      case ValueType::kString:
        return parse_strings(key, count, value);
      case ValueType::kU64:
        return parse_numbers<uint64_t, uint64_t>(key, count, value);
      case ValueType::kI64:
        return parse_numbers<int64_t, int64_t>(key, count, value);
      case ValueType::kF64:
        return parse_numbers<double, double>(key, count, value);
      case ValueType::kArray:
        break;
    }
    return error("metadata key " + quote(key) + " is an array of the unknown type " + std::to_string(type));
  }

  template <typename Stored, typename Widened>
  Status parse_numbers(std::string_view key, uint64_t count, MetaValue* value) {
    auto& numbers = value->emplace<std::vector<Widened>>();
    numbers.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
      Stored stored{};
      if (!reader_.read(&stored)) return truncated("metadata key " + quote(key));
      numbers.push_back(static_cast<Widened>(stored));
    }
    return {};
  }

  Status parse_bools(std::string_view key, uint64_t count, MetaValue* value) {
    auto& bools = value->emplace<std::vector<bool>>();
    for (uint64_t i = 0; i < count; ++i) {
      MetaValue element;
      QUIRE_RETURN_IF_ERROR(parse_bool(key, &element));
      bools.push_back(std::get<bool>(element));
    }
    return {};
  }

  Status parse_strings(std::string_view key, uint64_t count, MetaValue* value) {
    auto& strings = value->emplace<std::vector<std::string>>();
    strings.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) QUIRE_RETURN_IF_ERROR(parse_string(key, &strings.emplace_back()));
    return {};
  }

  // ---- Tensors ----

  Status parse_tensors() {
    QUIRE_RETURN_IF_ERROR(read_alignment());
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      TensorRef tensor;
      uint64_t offset = 0;
      QUIRE_RETURN_IF_ERROR(parse_tensor_info(i, &tensor, &offset));
      out_.tensors.push_back(std::move(tensor));
      offsets.push_back(offset);
    }
    std::unordered_set<std::string_view> names;
    for (const TensorRef& tensor : out_.tensors) {
      if (!names.insert(tensor.name).second) return error("tensor " + quote(tensor.name) + " occurs twice");
    }
    return locate_tensors(offsets);
  }

  Status read_alignment() {
    const auto found = out_.metadata.find("general.alignment");
    if (found == out_.metadata.end()) return {};
    const auto* value = std::get_if<uint64_t>(&found->second);
    if (value == nullptr || !std::has_single_bit(*value) || *value > kMaxAlignment) {
      return error("general.alignment is not a power of two up to " + std::to_string(kMaxAlignment));
    }
    alignment_ = *value;
    return {};
  }

  Status parse_tensor_info(uint64_t index, TensorRef* tensor, uint64_t* offset) {
    const std::string nth = "tensor entry " + std::to_string(index + 1);
    uint64_t length = 0;
    std::string_view name;
    if (!reader_.read(&length)) return truncated(nth);
    if (length > kMaxTensorNameBytes || !reader_.read_text(length, &name)) {
      return error(nth + " has a name of " + std::to_string(length) + " bytes");
    }
    if (!is_plain_name(name))
      return error(nth + " has the name " + quote(name) + ", which is empty or not plain ASCII");
    tensor->name = name;
    uint32_t rank = 0;
    if (!reader_.read(&rank)) return truncated("tensor " + quote(name));
    if (rank == 0 || rank > 4) return error("tensor " + quote(name) + " has " + std::to_string(rank) + " dimensions");
    tensor->rank = static_cast<int>(rank);
    for (uint32_t i = 0; i < rank; ++i) {
      uint64_t size = 0;
      if (!reader_.read(&size)) return truncated("tensor " + quote(name));
      if (size == 0 || size > kMaxDimension) {
        return error("tensor " + quote(name) + " has a dimension of " + std::to_string(size));
      }
      tensor->shape[rank - 1 - i] = static_cast<int64_t>(size);  // the file lists the contiguous one first
    }
    uint32_t type = 0;
    if (!reader_.read(&type) || !reader_.read(offset)) return truncated("tensor " + quote(name));
    return set_type(type, tensor);
  }

  Status set_type(uint32_t type, TensorRef* tensor) const {
    const DTypeInfo* info = dtype_from_ggml(type);
    if (info == nullptr) {
      const char* known = ggml_type_name(type);
      return unsupported(out_.file.path() + ": tensor " + quote(tensor->name) + " has type " +
                         (known != nullptr ? known : "id " + std::to_string(type)) + ", which quire cannot read");
    }
    tensor->dtype = info->dtype;
    if (tensor->columns() % info->block_elements != 0) {
      return error("tensor " + quote(tensor->name) + " has rows of " + std::to_string(tensor->columns()) +
                   " elements, which is not a multiple of the block of " + std::string(info->name));
    }
    // Each factor is at most 2^40 and bytes per element at most 4, so checking after every product is enough.
    unsigned __int128 bytes = static_cast<uint64_t>(row_bytes(tensor->dtype, tensor->columns()));
    for (int i = 0; i + 1 < tensor->rank; ++i) {
      bytes *= static_cast<uint64_t>(tensor->shape[static_cast<size_t>(i)]);
      if (bytes > out_.file.bytes().size()) {
        return error("tensor " + quote(tensor->name) + " of shape " +
                     shape_text({tensor->shape.data(), static_cast<size_t>(tensor->rank)}) +
                     " is larger than the file");
      }
    }
    tensor->bytes = static_cast<int64_t>(bytes);
    return {};
  }

  // Offsets count from the end of the tensor table, rounded up to the alignment.
  Status locate_tensors(const std::vector<uint64_t>& offsets) {
    const uint64_t file_bytes = out_.file.bytes().size();
    const uint64_t data_begin = (reader_.position() + alignment_ - 1) / alignment_ * alignment_;
    if (out_.tensors.empty()) return {};
    if (data_begin > file_bytes) return truncated("the padding before the tensor data");
    const uint64_t data_bytes = file_bytes - data_begin;
    std::vector<std::pair<uint64_t, const TensorRef*>> placed;
    for (size_t i = 0; i < offsets.size(); ++i) {
      TensorRef& tensor = out_.tensors[i];
      const auto bytes = static_cast<uint64_t>(tensor.bytes);
      if (offsets[i] % alignment_ != 0) {
        return error("tensor " + quote(tensor.name) + " starts at " + std::to_string(offsets[i]) +
                     ", which is not a multiple of " + std::to_string(alignment_));
      }
      if (offsets[i] > data_bytes || bytes > data_bytes - offsets[i]) {
        return error("tensor " + quote(tensor.name) + " (" + std::to_string(bytes) + " bytes at offset " +
                     std::to_string(offsets[i]) + ") reaches past the end: the file is truncated or not a GGUF file");
      }
      tensor.data = out_.file.bytes().data() + data_begin + offsets[i];
      placed.emplace_back(offsets[i], &tensor);
    }
    std::ranges::sort(placed);
    for (size_t i = 1; i < placed.size(); ++i) {
      if (placed[i].first - placed[i - 1].first < static_cast<uint64_t>(placed[i - 1].second->bytes)) {
        return error("tensors " + quote(placed[i - 1].second->name) + " and " + quote(placed[i].second->name) +
                     " overlap");
      }
    }
    return {};
  }

  GgufFile& out_;
  ByteReader reader_;
  uint64_t tensor_count_ = 0;
  uint64_t entry_count_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
};

}  // namespace

Result<GgufFile> GgufFile::open(const std::string& path, bool with_tensors) {
  QUIRE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  QUIRE_RETURN_IF_ERROR(refuse_git_lfs_pointer(file.bytes(), path));
  GgufFile gguf{std::move(file), 0, {}, {}, {}};
  const Status parsed = Parser(gguf).parse(with_tensors);
  QUIRE_RETURN_IF_ERROR(gguf.file.unchanged());  // first: it may be why
  QUIRE_RETURN_IF_ERROR(parsed);
  return gguf;
}

}  // namespace quire
