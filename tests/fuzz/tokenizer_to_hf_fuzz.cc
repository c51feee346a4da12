// Any tokenizer keys of a GGUF file, converted to the documents of a Hugging Face directory: an error, or the same
// tokenizer, which becomes keys again.
//
// Input: a JSON object of the keys. U+E000 to U+E0FF in its texts stand for single bytes, since GGUF's need not be UTF-8.
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "fuzz/tokenizer_parts.h"

namespace quire {
namespace {

using Json = nlohmann::json;

std::string with_bytes(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](size_t n) { return i + n < text.size() ? static_cast<uint8_t>(text[i + n]) : 0; };
    if (at(0) == 0xEE && at(1) >= 0x80 && at(1) <= 0x83) {
      out += static_cast<char>((at(1) - 0x80) << 6 | (at(2) & 0x3F));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

template <typename T>
std::optional<MetaValue> list_of(const Json& array) {
  std::vector<T> list;
  for (const Json& element : array) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (!element.is_string()) return std::nullopt;
      list.push_back(with_bytes(element.get<std::string>()));
    } else {
      if (!element.is_number() || (std::is_integral_v<T> && !element.is_number_integer())) return std::nullopt;
      list.push_back(element.get<T>());
    }
  }
  return MetaValue(std::move(list));
}

// As GGUF's reader gives it; absent: GGUF has no such value.
std::optional<MetaValue> value_of(const Json& json) {
  if (json.is_boolean()) return MetaValue(json.get<bool>());
  if (json.is_number_unsigned()) return MetaValue(json.get<uint64_t>());
  if (json.is_number_integer()) return MetaValue(json.get<int64_t>());
  if (json.is_number_float()) return MetaValue(json.get<double>());
  if (json.is_string()) return MetaValue(with_bytes(json.get<std::string>()));
  if (!json.is_array() || json.empty()) return std::nullopt;
  if (json[0].is_string()) return list_of<std::string>(json);
  if (json[0].is_number_unsigned()) return list_of<int64_t>(json);
  return json[0].is_number() ? list_of<double>(json) : std::nullopt;
}

void convert(const MetaCheckpoint& gguf) {
  (void)chat_template_source(gguf);
  (void)special_token_texts(gguf);
  if (const auto tokenizer = load_tokenizer(gguf); tokenizer.ok()) exercise(**tokenizer);
  const auto documents = hf_tokenizer_documents(gguf);
  if (!documents.ok()) return;
  const MetaCheckpoint hf(std::map<std::string, std::string, std::less<>>(documents->begin(), documents->end()));
  require_same(gguf, hf);
  const auto keys = gguf_tokenizer_metadata(hf);
  if (keys.ok())
    require_same(hf, MetaCheckpoint(std::map<std::string, MetaValue, std::less<>>(keys->begin(), keys->end())));
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const quire::Json json = quire::Json::parse(bytes, bytes + size, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return 0;
  std::map<std::string, quire::MetaValue, std::less<>> keys;
  for (const auto& [key, value] : json.items()) {
    if (auto converted = quire::value_of(value)) keys.emplace(key, std::move(*converted));
  }
  if (!keys.empty()) quire::convert(quire::MetaCheckpoint(std::move(keys)));
  return 0;
}
