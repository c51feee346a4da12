// Inputs that are texts: documents one after another, tensors described line by line, folders of such files.
//
// Descriptions stay valid under most changes to their bytes, so a fuzzer reaches what lies behind a parser instead of
// failing at lengths and offsets, which the targets of whole files try.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors_file.h"

namespace quire {

// The parts of an input, cut at lines of "---"; `count` of them, the last ones empty where the input has fewer.
inline std::vector<std::string> split_documents(std::string_view text, size_t count) {
  constexpr std::string_view kCut = "\n---\n";
  std::vector<std::string> documents;
  while (documents.size() + 1 < count) {
    const size_t cut = text.find(kCut);
    documents.emplace_back(text.substr(0, cut));
    text = cut == std::string_view::npos ? std::string_view() : text.substr(cut + kCut.size());
  }
  documents.emplace_back(text);
  return documents;
}

// Tensors from lines "NAME DTYPE SIZE SIZE ... =HEX": the bytes are those of HEX again and again, or zeros.
class DescribedTensors {
 public:
  static constexpr uint64_t kMaxBytes = 1 << 18;  // of all tensors: they are cheap to describe

  explicit DescribedTensors(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) add(line);
  }

  // Their data lies in this object.
  std::vector<SafetensorsEntry> entries() const {
    std::vector<SafetensorsEntry> entries;
    for (const Tensor& tensor : tensors_) {
      entries.push_back({.name = tensor.name,
                         .dtype = tensor.dtype,
                         .shape = tensor.shape,
                         .data = reinterpret_cast<const std::byte*>(tensor.data.data()),
                         .bytes = static_cast<int64_t>(tensor.data.size())});
    }
    return entries;
  }

  // A safetensors file of them.
  std::string file() const {
    std::string header = "{", data;
    for (const Tensor& tensor : tensors_) {
      if (header.size() > 1) header += ",";
      header += "\"" + tensor.name + R"(":{"dtype":")" + tensor.dtype + R"(","shape":[)";
      for (size_t i = 0; i < tensor.shape.size(); ++i) header += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
      header += R"(],"data_offsets":[)" + std::to_string(data.size()) + ",";
      data.append(tensor.data.data(), tensor.data.size());
      header += std::to_string(data.size()) + "]}";
    }
    header += "}";
    const uint64_t length = header.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    return file + header + data;
  }

 private:
  struct Tensor {
    std::string name, dtype;
    std::vector<int64_t> shape;
    std::vector<char> data;
  };

  static uint64_t element_bytes(const std::string& dtype) {
    if (dtype == "U8" || dtype == "I8" || dtype == "F8_E4M3") return 1;
    if (dtype == "F16" || dtype == "BF16") return 2;
    if (dtype == "I32" || dtype == "F32") return 4;
    return dtype == "I64" ? 8 : 0;
  }

  static std::vector<char> bytes_of_hex(const std::string& hex) {
    std::vector<char> bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      bytes.push_back(static_cast<char>(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16)));
    if (bytes.empty()) bytes.push_back(0);
    return bytes;
  }

  // Lines that describe no tensor, or more than may be, are left out.
  void add(const std::string& line) {
    std::istringstream words(line);
    Tensor tensor;
    words >> tensor.name >> tensor.dtype;
    uint64_t bytes = element_bytes(tensor.dtype);
    std::string word, hex;
    while (words >> word) {
      if (word[0] == '=') {
        hex = word.substr(1);
        break;
      }
      const auto size = static_cast<int64_t>(std::strtoull(word.c_str(), nullptr, 10) & 0xfffffff);
      tensor.shape.push_back(size);
      bytes = std::min<uint64_t>(bytes * static_cast<uint64_t>(size), kMaxBytes + 1);
    }
    if (element_bytes(tensor.dtype) == 0 || total_ + bytes > kMaxBytes) return;
    total_ += bytes;
    const std::vector<char> pattern = bytes_of_hex(hex);
    for (uint64_t i = 0; i < bytes; ++i) tensor.data.push_back(pattern[i % pattern.size()]);
    tensor.data.shrink_to_fit();  // so that a sanitizer sees a read past the end
    tensors_.push_back(std::move(tensor));
  }

  std::vector<Tensor> tensors_;
  uint64_t total_ = 0;
};

// A folder that disappears with the object.
class FuzzFolder {
 public:
  FuzzFolder() : path_((std::filesystem::temp_directory_path() / "quire-fuzz-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~FuzzFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(file(name), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

// Stops the fuzzer where the program breaks its word.
inline void fuzz_require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  std::abort();
}

}  // namespace quire
