// Typed access to GGUF metadata. A key of the wrong type or out of range is an error that names file and key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "formats/gguf_file.h"

namespace quire {

class GgufMetadataView {
 public:
  // Both must outlive the view. `path` is for messages.
  GgufMetadataView(const GgufMetadata& metadata, const std::string& path) : metadata_(metadata), path_(path) {}

  const std::string& path() const { return path_; }
  const MetaValue* find(std::string_view key) const;

  // Absent keys are nullopt. Integers of every width are accepted, and for floats integers too.
  Result<std::optional<int64_t>> find_int(std::string_view key, int64_t min, int64_t max) const;
  Result<std::optional<double>> find_float(std::string_view key) const;
  Result<std::optional<std::string>> find_string(std::string_view key) const;

  // Absent keys are an error.
  Result<int64_t> require_int(std::string_view key, int64_t min, int64_t max) const;
  Result<double> require_float(std::string_view key) const;
  Result<std::string> require_string(std::string_view key) const;

  // The value of a key that may hold one number or `count` numbers, one a layer; those must all be equal, because
  // the supported families have layers of one shape.
  Result<std::optional<int64_t>> find_uniform_int(std::string_view key, int64_t count, int64_t min, int64_t max) const;

  Status error(std::string_view key, const std::string& what) const;

 private:
  Result<int64_t> to_int(std::string_view key, const MetaValue& value, int64_t min, int64_t max) const;

  const GgufMetadata& metadata_;
  const std::string& path_;
};

}  // namespace quire
