// A checkpoint that is only what its tokenizer is built from, for the tests of engine/.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "formats/checkpoint.h"

namespace quire::testing_checkpoint {

class MetaCheckpoint : public Checkpoint {
 public:
  // GGUF keys, or documents of a directory.
  explicit MetaCheckpoint(std::map<std::string, MetaValue, std::less<>> keys) : keys_(std::move(keys)) {
    path_ = "model.gguf";
  }
  explicit MetaCheckpoint(std::map<std::string, std::string, std::less<>> documents)
      : documents_(std::move(documents)) {
    path_ = "model";
  }

  std::string_view format() const override { return keys_.empty() ? "safetensors" : "GGUF v3"; }
  const MetaValue* meta(std::string_view key) const override {
    const auto it = keys_.find(key);
    return it == keys_.end() ? nullptr : &it->second;
  }
  const std::string* document(std::string_view name) const override {
    const auto it = documents_.find(name);
    return it == documents_.end() ? nullptr : &it->second;
  }
  Hparams& hparams() { return hparams_; }

 private:
  std::map<std::string, MetaValue, std::less<>> keys_;
  std::map<std::string, std::string, std::less<>> documents_;
};

}  // namespace quire::testing_checkpoint
