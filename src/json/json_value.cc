#include "json/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace quire {
namespace {

// Receives the parser's events and builds the document. Returning false ends parsing; `error` then says why.
class DocumentBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add(std::monostate()); }
  bool boolean(bool v) override { return add(v); }
  bool number_integer(number_integer_t v) override { return add(int64_t{v}); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v <= static_cast<uint64_t>(INT64_MAX)) return add(static_cast<int64_t>(v));
    return add(uint64_t{v});
  }
  bool number_float(number_float_t v, const string_t&) override { return add(double{v}); }
  bool string(string_t& v) override { return add(std::move(v)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_array(size_t) override { return open(JsonValue::Array()); }
  bool end_array() override { return close(); }
  bool start_object(size_t) override { return open(JsonValue::Object()); }
  bool end_object() override { return keys_are_distinct() && close(); }
  bool key(string_t& v) override {
    key_ = std::move(v);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string what = error.what();
    if (const size_t tag = what.find("] "); tag != std::string::npos) what.erase(0, tag + 2);
    // The parser quotes what it read last, which is the client's text and may be long.
    if (const size_t quote = what.find("; last read"); quote != std::string::npos) what.erase(quote);
    status_ = invalid_argument("not valid JSON: " + what);
    return false;
  }

  JsonValue take_root() { return std::move(root_); }
  const Status& status() const { return status_; }

 private:
  template <typename T>
  bool add(T v) {
    return place(JsonValue{std::move(v)}) != nullptr;
  }

  // Where the value now lives; null: over the limit. Pointers into parents stay good, because a parent does not grow
  // while a child of it is open.
  JsonValue* place(JsonValue v) {
    if (++count_ > JsonValue::kMaxValues) {
      status_ = out_of_range("the JSON holds more than " + std::to_string(JsonValue::kMaxValues) + " values");
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    if (auto* array = std::get_if<JsonValue::Array>(&open_.back()->value)) return &array->emplace_back(std::move(v));
    auto& object = std::get<JsonValue::Object>(open_.back()->value);
    return &object.emplace_back(JsonMember{std::move(key_), std::move(v)}).value;
  }

  template <typename T>
  bool open(T container) {
    if (open_.size() >= JsonValue::kMaxDepth) {
      status_ = out_of_range("the JSON nests more than " + std::to_string(JsonValue::kMaxDepth) + " levels deep");
      return false;
    }
    JsonValue* placed = place(JsonValue{std::move(container)});
    if (placed != nullptr) open_.push_back(placed);
    return placed != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool keys_are_distinct() {
    const auto& object = std::get<JsonValue::Object>(open_.back()->value);
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (const JsonMember& member : object) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return true;
    status_ =
        invalid_argument("the JSON names the key \"" + std::string(twice->substr(0, 64)) + "\" twice in one object");
    return false;
  }

  JsonValue root_;
  std::vector<JsonValue*> open_;  // containers being read, outermost first
  std::string key_;
  size_t count_ = 0;
  Status status_;
};

struct TypeName {
  std::string_view operator()(std::monostate) const { return "null"; }
  std::string_view operator()(bool) const { return "a boolean"; }
  std::string_view operator()(int64_t) const { return "an integer"; }
  std::string_view operator()(uint64_t) const { return "an integer"; }
  std::string_view operator()(double) const { return "a number"; }
  std::string_view operator()(const std::string&) const { return "a string"; }
  std::string_view operator()(const JsonValue::Array&) const { return "an array"; }
  std::string_view operator()(const JsonValue::Object&) const { return "an object"; }
};

}  // namespace

Result<JsonValue> JsonValue::parse(std::string_view text) {
  DocumentBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return builder.status();
  return builder.take_root();
}

std::string_view JsonValue::type_name() const { return std::visit(TypeName{}, value); }

const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* object = as<Object>();
  if (object == nullptr) return nullptr;
  for (const JsonMember& member : *object) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

}  // namespace quire
