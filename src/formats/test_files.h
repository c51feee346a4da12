// Small checkpoints written by the tests of formats/: valid ones, and bytes that only hostile files hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing_files {

// A directory that disappears with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  // Writes a file and returns its path. The name may contain directories, which are made.
  std::string write(const std::string& name, std::string_view bytes) const;
  // Replaces the bytes of an existing file of the same size in place, which spares the disk a flush.
  void rewrite(const std::string& path, std::string_view bytes) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// CPU seconds since construction, for "an error within a second": the machine's load does not count, and a build
// without optimisation gets more.
class Stopwatch {
 public:
  bool within_a_second() const;

 private:
  double start_seconds_ = seconds();
  static double seconds();
};

// Little-endian bytes, appended field by field.
class Bytes {
 public:
  template <typename T>
  Bytes& add(T value) {
    const char* raw = reinterpret_cast<const char*>(&value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  Bytes& text(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  Bytes& string(std::string_view text) { return add<uint64_t>(text.size()).text(text); }
  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

enum GgufType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32Value, kBool, kString, kArray, kU64, kI64, kF64 };

// Values of metadata entries: the type, then the bytes.
std::string u16_value(uint16_t value);
std::string u32_value(uint32_t value);
std::string f32_value(float value);
std::string bool_value(bool value);
std::string string_value(std::string_view text);
std::string bools_value(const std::vector<bool>& values);
std::string ints_value(const std::vector<int32_t>& values);
std::string floats_value(const std::vector<float>& values);
std::string strings_value(const std::vector<std::string>& values);

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> dims;  // contiguous one first, as in the file
  uint32_t type = 0;
  std::string data;
  int64_t offset = -1;  // -1: right after the previous one, aligned
};

// A whole file. Everything can be set to nonsense.
struct Gguf {
  std::string magic = "GGUF";
  uint32_t version = 3;
  int64_t tensor_count = -1;  // -1: the true one
  int64_t entry_count = -1;
  std::vector<std::pair<std::string, std::string>> entries;  // key, value with its type
  std::vector<GgufTensor> tensors;
  uint64_t alignment = 32;

  void set(const std::string& key, const std::string& value);  // replaces or appends
  void erase(const std::string& key);
  GgufTensor& tensor(const std::string& name);  // must exist
  void add_f32(const std::string& name, const std::vector<uint64_t>& dims);
  std::string header() const;  // up to the tensor data, padded
  std::string bytes() const;
};

// Valid, one layer, F32, deterministic weights: hidden 8, 2 heads, 1 key head, feed-forward 16, 8 tokens.
Gguf small_llama_gguf();

struct SafetensorsItem {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string data;
};
std::string safetensors_bytes(const std::map<std::string, SafetensorsItem>& tensors);
std::string safetensors_bytes(std::string_view header, std::string_view data);  // the header as it is

// The same model as a Hugging Face directory: config.json and model.safetensors.
std::string small_llama_config();
std::map<std::string, SafetensorsItem> small_llama_tensors();

}  // namespace quire::testing_files
