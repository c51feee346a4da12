// Typed access to one object of a Hugging Face JSON file. Immutable; copies share the object.
//
// A key whose value is null counts as absent, as it does for transformers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace quire {

class HfJson {
 public:
  // Checks the text first (json/json_check.h). `where` names the file in messages.
  static Result<HfJson> parse(const std::string& text, const std::string& where);

  const std::string& where() const { return where_; }
  bool has(const std::string& key) const;
  bool names(const std::string& key) const;  // true even if its value is null
  std::vector<std::string> keys() const;     // in the order of their bytes, without those whose value is null
  // The value as JSON text, cut to what fits a message; "null" when absent.
  std::string value_text(const std::string& key) const;
  // Whether both hold the same under `key`; 10000 and 10000.0 are the same.
  bool same_value(const HfJson& other, const std::string& key) const;
  // This object with the keys of `over` in place of its own.
  HfJson updated(const HfJson& over) const;
  Status error(const std::string& key, const std::string& what) const;

  Result<std::optional<int64_t>> find_int(const std::string& key) const;
  Result<std::optional<double>> find_float(const std::string& key) const;
  Result<std::optional<bool>> find_bool(const std::string& key) const;
  Result<std::optional<std::string>> find_string(const std::string& key) const;
  Result<std::optional<HfJson>> find_object(const std::string& key) const;
  // The objects under an object's keys, in the order of the keys' bytes; empty: absent.
  Result<std::vector<std::pair<std::string, HfJson>>> find_objects(const std::string& key) const;
  Result<std::vector<float>> find_floats(const std::string& key) const;         // empty: absent
  Result<std::vector<std::string>> find_strings(const std::string& key) const;  // empty: absent
  Result<std::vector<int64_t>> find_int_or_ints(const std::string& key) const;  // empty: absent

 private:
  struct Object;  // hides the JSON library
  HfJson(Object object, std::string where);

  std::shared_ptr<const Object> object_;
  std::string where_;
};

}  // namespace quire
