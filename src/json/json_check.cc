#include "json/json_check.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "base/messages.h"

namespace quire {
namespace {

using Json = nlohmann::json;

// Receives the parser's events; returning false stops it.
class Checker {
 public:
  explicit Checker(const JsonLimits& limits) : limits_(limits) {}

  const std::string& problem() const { return problem_; }

  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(int64_t) { return value(); }
  bool number_unsigned(uint64_t) { return value(); }
  bool number_float(double, const std::string&) { return value(); }
  bool string(std::string&) { return value(); }
  bool binary(Json::binary_t&) { return value(); }

  bool start_object(size_t) { return open(); }
  bool key(std::string& name) {
    if (keys_.back().insert(name).second) return true;
    problem_ = "has the key " + quote(name) + " twice in one object";
    return false;
  }
  bool end_object() { return close(); }
  bool start_array(size_t) {
    if (keys_.empty()) return value();  // refused there: the outermost value is to be an object
    return open();
  }
  bool end_array() { return close(); }

  bool parse_error(size_t position, const std::string&, const Json::exception&) {
    problem_ = "is not valid JSON (near byte " + std::to_string(position) + ")";
    return false;
  }

 private:
  bool value() {
    if (keys_.empty()) {
      problem_ = "does not hold a JSON object";
      return false;
    }
    return count();
  }
  bool count() {
    if (++values_ <= limits_.values) return true;
    problem_ = "holds more than " + std::to_string(limits_.values) + " values";
    return false;
  }
  bool open() {
    keys_.emplace_back();
    if (keys_.size() <= limits_.depth) return count();
    problem_ = "is nested more than " + std::to_string(limits_.depth) + " deep";
    return false;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each open object or array
  size_t values_ = 0;
  std::string problem_;
};

}  // namespace

Status check_json_object(std::string_view text, const std::string& where, const JsonLimits& limits) {
  Checker checker(limits);
  if (Json::sax_parse(text, &checker)) return {};
  return corrupt(where + ": " + checker.problem());
}

}  // namespace quire
