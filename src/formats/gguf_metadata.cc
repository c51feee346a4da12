#include "formats/gguf_metadata.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/messages.h"

namespace quire {

const MetaValue* GgufMetadataView::find(std::string_view key) const {
  const auto found = metadata_.find(std::string(key));
  return found != metadata_.end() ? &found->second : nullptr;
}

Status GgufMetadataView::error(std::string_view key, const std::string& what) const {
  return corrupt(path_ + ": metadata key " + quote(key) + " " + what);
}

Result<int64_t> GgufMetadataView::to_int(std::string_view key, const MetaValue& value, int64_t min, int64_t max) const {
  int64_t number = 0;
  if (const auto* as_signed = std::get_if<int64_t>(&value)) {
    number = *as_signed;
  } else if (const auto* as_unsigned = std::get_if<uint64_t>(&value)) {
    if (*as_unsigned > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return error(key, "is " + std::to_string(*as_unsigned));
    }
    number = static_cast<int64_t>(*as_unsigned);
  } else {
    return error(key, "is not an integer");
  }
  if (number < min || number > max) {
    return error(key,
                 "is " + std::to_string(number) + ", not within " + std::to_string(min) + ".." + std::to_string(max));
  }
  return number;
}

Result<std::optional<int64_t>> GgufMetadataView::find_int(std::string_view key, int64_t min, int64_t max) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  QUIRE_ASSIGN_OR_RETURN(const int64_t number, to_int(key, *value, min, max));
  return std::optional<int64_t>(number);
}

Result<std::optional<double>> GgufMetadataView::find_float(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  double number = 0.0;
  if (const auto* as_float = std::get_if<double>(value)) {
    number = *as_float;
  } else if (const auto* as_signed = std::get_if<int64_t>(value)) {
    number = static_cast<double>(*as_signed);
  } else if (const auto* as_unsigned = std::get_if<uint64_t>(value)) {
    number = static_cast<double>(*as_unsigned);
  } else {
    return error(key, "is not a number");
  }
  if (!std::isfinite(number)) return error(key, "is not a finite number");
  return std::optional<double>(number);
}

Result<std::optional<std::string>> GgufMetadataView::find_string(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) return error(key, "is not a string");
  return std::optional<std::string>(*text);
}

Result<int64_t> GgufMetadataView::require_int(std::string_view key, int64_t min, int64_t max) const {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<int64_t> number, find_int(key, min, max));
  if (!number) return error(key, "is missing");
  return *number;
}

Result<double> GgufMetadataView::require_float(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(const std::optional<double> number, find_float(key));
  if (!number) return error(key, "is missing");
  return *number;
}

Result<std::string> GgufMetadataView::require_string(std::string_view key) const {
  QUIRE_ASSIGN_OR_RETURN(std::optional<std::string> text, find_string(key));
  if (!text) return error(key, "is missing");
  return *std::move(text);
}

Result<std::optional<int64_t>> GgufMetadataView::find_uniform_int(std::string_view key, int64_t count, int64_t min,
                                                                  int64_t max) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  std::vector<MetaValue> elements;
  if (const auto* as_signed = std::get_if<std::vector<int64_t>>(value)) {
    elements.assign(as_signed->begin(), as_signed->end());
  } else if (const auto* as_unsigned = std::get_if<std::vector<uint64_t>>(value)) {
    elements.assign(as_unsigned->begin(), as_unsigned->end());
  } else {
    return find_int(key, min, max);
  }
  if (static_cast<int64_t>(elements.size()) != count) {
    return error(key, "has " + std::to_string(elements.size()) + " entries for " + std::to_string(count) + " layers");
  }
  QUIRE_ASSIGN_OR_RETURN(const int64_t first, to_int(key, elements.front(), min, max));
  for (const MetaValue& element : elements) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t number, to_int(key, element, min, max));
    if (number != first) return unsupported(path_ + ": metadata key " + quote(key) + " differs from layer to layer");
  }
  return std::optional<int64_t>(first);
}

}  // namespace quire
