#include "vocab/hf_tokenizer_reader.h"

#include <nlohmann/json.hpp>

#include "text/vocabulary.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 30;
constexpr size_t kMaxDepth = 64;

// Follows the parser's events. Within model.vocab and model.merges they fill the lists; elsewhere they build `root_`.
class Handler : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(HfTokenizerParts* parts) : parts_(parts) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool b) override { return value(b); }
  bool number_float(double d, const std::string&) override { return value(d); }
  bool number_integer(int64_t i) override { return vocab_depth_ ? refuse_id() : value(i); }

  bool number_unsigned(uint64_t u) override {
    if (!vocab_depth_) return value(u);
    if (u >= static_cast<uint64_t>(Vocabulary::kMaxSize)) return refuse_id();
    parts_->tokens.add(key_);
    parts_->ids.push_back(static_cast<int32_t>(u));
    return true;
  }

  bool string(std::string& text) override {
    if (!merges_depth_) return value(std::move(text));
    return in_pair_ ? merge_part(text) : merge_line(text);
  }

  bool binary(Json::binary_t&) override { return refuse("holds binary data"); }

  bool start_object(size_t) override {
    if (merges_depth_ || vocab_depth_) return refuse(vocab_depth_ ? "has an object within model.vocab" : kBadMerge);
    const bool is_vocab = at_model_member("vocab");
    if (!open(Json::object())) return false;
    if (is_vocab) vocab_depth_ = stack_.size();
    return true;
  }

  bool end_object() override {
    if (vocab_depth_ == stack_.size()) vocab_depth_ = 0;
    stack_.pop_back();
    return true;
  }

  bool start_array(size_t) override {
    if (vocab_depth_) return refuse("has an array within model.vocab");
    if (merges_depth_) {
      if (in_pair_) return refuse(kBadMerge);
      in_pair_ = true;
      return true;
    }
    const bool is_merges = at_model_member("merges");
    if (!open(Json::array())) return false;
    if (is_merges) merges_depth_ = stack_.size();
    return true;
  }

  bool end_array() override {
    if (in_pair_) {
      in_pair_ = false;
      return parts_->merge_parts.size() % 2 == 0 && pair_parts() ? true : refuse(kBadMerge);
    }
    if (merges_depth_ == stack_.size()) merges_depth_ = 0;
    stack_.pop_back();
    return true;
  }

  bool key(std::string& text) override {
    key_ = std::move(text);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return refuse("is not JSON at byte " + std::to_string(position));
  }

  const std::string& error() const { return error_; }
  const Json& root() const { return root_; }

 private:
  static constexpr const char* kBadMerge = "has an entry of model.merges that is no pair of strings";

  bool refuse(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return false;
  }
  bool refuse_id() {
    return refuse("gives the token '" + key_ + "' an id outside 0.." + std::to_string(Vocabulary::kMaxSize - 1));
  }

  bool at_model_member(std::string_view name) const {
    return stack_.size() == 2 && model_ != nullptr && stack_.back() == model_ && key_ == name;
  }

  // Puts a value where the parser stands; returns its place. A repeated key is the file's mistake.
  Json* place(Json v) {
    if (stack_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    if (parent.contains(key_)) {
      refuse("has two members '" + key_ + "' in one object");
      return nullptr;
    }
    Json& slot = parent[key_];
    slot = std::move(v);
    return &slot;
  }

  bool value(Json v) {
    if (vocab_depth_) return refuse_id();
    if (merges_depth_) return refuse(kBadMerge);
    return place(std::move(v)) != nullptr;
  }

  bool open(Json container) {
    if (stack_.size() == kMaxDepth) return refuse("nests deeper than " + std::to_string(kMaxDepth));
    const bool is_model = stack_.size() == 1 && key_ == "model";
    Json* at = place(std::move(container));
    if (at == nullptr) return false;
    if (is_model) model_ = at;
    stack_.push_back(at);
    return true;
  }

  bool merge_part(std::string_view text) {
    parts_->merge_parts.add(text);
    ++pair_size_;
    return true;
  }
  bool pair_parts() { return std::exchange(pair_size_, 0) == 2; }

  // The older spelling: "left right", neither with a space in it.
  bool merge_line(std::string_view line) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      return refuse(kBadMerge);
    parts_->merge_parts.add(line.substr(0, space));
    parts_->merge_parts.add(line.substr(space + 1));
    return true;
  }

  HfTokenizerParts* parts_;
  Json root_;
  std::vector<Json*> stack_;  // open containers; pointers hold while a child is open, as nothing is added beside it
  const Json* model_ = nullptr;
  std::string key_;
  size_t vocab_depth_ = 0;  // stack size within model.vocab; 0: elsewhere
  size_t merges_depth_ = 0;
  bool in_pair_ = false;
  int pair_size_ = 0;
  std::string error_;
};

}  // namespace

Result<HfTokenizerParts> read_hf_tokenizer(const std::string& tokenizer_json) {
  if (tokenizer_json.size() > kMaxBytes) return out_of_range("tokenizer.json exceeds 1 GiB");
  HfTokenizerParts parts;
  Handler handler(&parts);
  try {
    if (!Json::sax_parse(tokenizer_json, &handler)) return corrupt("tokenizer.json " + handler.error());
    if (!handler.root().is_object()) return corrupt("tokenizer.json is not an object");
    parts.rest = handler.root().dump();
  } catch (const Json::exception& e) {
    return corrupt(std::string("tokenizer.json: ") + e.what());
  }
  return parts;
}

}  // namespace quire
