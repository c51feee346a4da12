// Reads tokenizer.json without building a document of its vocabulary: the two large members, model.vocab and
// model.merges, go into flat lists as they are parsed, the rest into a small JSON text that is parsed as usual.
//
// Pure function, any thread. Memory: the bytes of the token texts, and eight bytes for each token and merge.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace quire {

// Strings back to back.
class StringList {
 public:
  void add(std::string_view text) {
    blob_ += text;
    ends_.push_back(static_cast<uint32_t>(blob_.size()));
  }
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return blob_.size(); }
  std::string_view operator[](size_t i) const {
    const uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(blob_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string blob_;
  std::vector<uint32_t> ends_;
};

struct HfTokenizerParts {
  StringList tokens;         // model.vocab, in file order
  std::vector<int32_t> ids;  // of each token; >= 0, below Vocabulary::kMaxSize
  StringList merge_parts;    // model.merges: left and right in turn
  std::string rest;          // the document with model.vocab and model.merges left empty, as JSON text
};

Result<HfTokenizerParts> read_hf_tokenizer(const std::string& tokenizer_json);

}  // namespace quire
