#include <algorithm>
#include <nlohmann/json.hpp>

#include "jinja/json.h"

namespace quire::jinja {
namespace {

using Json = nlohmann::ordered_json;

// Receives the parser's events and builds values, so that nesting is counted and no number loses digits.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(Runtime& runtime, std::string_view what) : runtime_(runtime), what_(what) {}

  bool null() override { return add_scalar(Value::none()); }
  bool boolean(bool value) override { return add_scalar(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return add_scalar(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return too_large(std::to_string(value));
    return add_scalar(Value::integer(static_cast<Int>(value)));
  }
  bool binary(binary_t&) override { return false; }

  // Also gets integers that no machine word holds.
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") != std::string::npos) return add_scalar(Value::floating(value));
    return too_large(text);
  }

  bool string(string_t& value) override { return add(text_value(std::move(value))); }
  bool key(string_t& value) override {
    open_.back().key = text_value(std::move(value));
    return true;
  }

  bool start_object(std::size_t) override { return open(true); }
  bool start_array(std::size_t) override { return open(false); }

  bool end_object() override {
    Value object = make_dict(runtime_.heap(), std::move(open_.back().entries), Origin::kCaller);
    open_.pop_back();
    return add(std::move(object));
  }

  bool end_array() override {
    Value array = make_list(runtime_.heap(), std::move(open_.back().items), Origin::kCaller);
    open_.pop_back();
    return add(std::move(array));
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    return fail("not JSON at byte " + std::to_string(position) + ": " + error.what());
  }

  const Status& status() const { return status_; }
  Value take() { return std::move(result_); }

 private:
  struct Open {
    bool is_object;
    Value key;
    Dict::Entries entries;
    std::vector<Value> items;
  };

  Value text_value(std::string bytes) {
    return Value::string(runtime_.heap(), make_text(std::move(bytes), Origin::kCaller));
  }

  bool open(bool is_object) {
    if (open_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      return fail("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    open_.push_back({is_object, {}, {}, {}});
    return true;
  }

  bool add_scalar(Value value) { return add(std::move(value).written_by(Origin::kCaller)); }

  bool add(Value value) {
    status_ = runtime_.charge(1);
    if (!status_.ok()) return false;
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().entries.emplace_back(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  bool too_large(const std::string& digits) {
    return fail("the integer " + digits.substr(0, 50) + " has more than 64 bits");
  }

  bool fail(const std::string& message) {
    status_ = invalid_argument(std::string(what_) + ": " + message);
    return false;
  }

  Runtime& runtime_;
  std::string_view what_;
  std::vector<Open> open_;
  Value result_;
  Status status_;
};

}  // namespace

Result<Value> parse_json(Runtime& runtime, std::string_view text, std::string_view what) {
  Builder builder(runtime, what);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    if (!builder.status().ok()) return builder.status();
    return invalid_argument(std::string(what) + ": not JSON");
  }
  return builder.take();
}

}  // namespace quire::jinja
