#include "formats/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "base/messages.h"
#include "formats/gguf_checkpoint.h"
#include "formats/hf_checkpoint.h"
#include "formats/hf_weights.h"

namespace quire {
namespace {

// The GGUF file of a directory that holds one model and no safetensors; empty: it is Hugging Face's kind.
Result<std::string> gguf_of_directory(const std::string& directory) {
  if (has_hf_weights(directory)) return std::string();
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    // Of a split model the first part stands for all; what encodes images is no model of its own.
    const bool later_part = name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (name.ends_with(".gguf") && !later_part && !name.starts_with("mmproj")) found.push_back(name);
  }
  if (found.empty()) return std::string();
  if (found.size() == 1) return directory + "/" + found.front();
  std::ranges::sort(found);
  return invalid_argument(directory + ": holds " + std::to_string(found.size()) + " GGUF models; name one of them, " +
                          quote(found[0]) + " or " + quote(found[1]));
}

}  // namespace

int64_t TensorRef::rows() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= shape[static_cast<size_t>(i)];
  return n;
}

std::string TensorRef::type_name() const {
  return quantized != nullptr ? quantized->name() : std::string(dtype_info(dtype).name);
}

bool same_matrix(const TensorRef& a, const TensorRef& b) {
  if (a.quantized != nullptr || b.quantized != nullptr || a.rank != 2 || b.rank != 2 || a.shape != b.shape)
    return false;
  if (a.dtype == b.dtype) return std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes)) == 0;
  std::vector<float> left(static_cast<size_t>(a.columns())), right(left.size());
  for (int64_t r = 0; r < a.rows(); ++r) {
    a.decode_f32(r, 1, left.data());
    b.decode_f32(r, 1, right.data());
    if (left != right) return false;
  }
  return true;
}

const std::byte* TensorRef::row(int64_t r) const {
  int64_t stored = r;
  if (interleaved_head_dim > 0 && rank > 1) {
    const int64_t half = interleaved_head_dim / 2;
    const int64_t in_head = r % interleaved_head_dim;
    stored = r - in_head + 2 * (in_head % half) + in_head / half;
  }
  return data + stored * row_bytes(dtype, columns());
}

void TensorRef::decode_f32(int64_t first, int64_t n, float* out) const {
  if (quantized != nullptr) {
    for (int64_t r = 0; r < n; ++r) quantized->decode_f32(first + r, out + r * columns());
    return;
  }
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t row_blocks = columns() / info.block_elements;
  const int64_t count = n * columns();
  if (interleaved_head_dim == 0) {
    info.decode(row(first), n * row_blocks, out);
  } else if (rank > 1) {
    for (int64_t r = 0; r < n; ++r) info.decode(row(first + r), row_blocks, out + r * columns());
  } else if (n > 0) {
    std::vector<float> stored(static_cast<size_t>(count));
    info.decode(data, row_blocks, stored.data());
    const int64_t half = interleaved_head_dim / 2;
    for (int64_t head = 0; head < count; head += interleaved_head_dim) {
      for (int64_t i = 0; i < half; ++i) {
        out[head + i] = stored[static_cast<size_t>(head + 2 * i)];
        out[head + half + i] = stored[static_cast<size_t>(head + 2 * i + 1)];
      }
    }
  }
  if (add_one) {
    for (int64_t i = 0; i < count; ++i) out[i] += 1.0f;
  }
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string& path, CheckpointParts parts) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return not_found(path + ": no such file or directory");
  if (std::filesystem::is_directory(status)) {
    QUIRE_ASSIGN_OR_RETURN(const std::string gguf, gguf_of_directory(path));
    return gguf.empty() ? open_hf_checkpoint(path, parts) : open_gguf_checkpoint(gguf, parts);
  }
  if (path.ends_with(".safetensors")) {
    return invalid_argument(path + ": name the checkpoint's directory, which also holds config.json, not this file");
  }
  return open_gguf_checkpoint(path, parts);
}

const TensorRef* Checkpoint::find(std::string_view canonical_name) const {
  const auto found = index_by_name_.find(canonical_name);
  return found != index_by_name_.end() ? &tensors_[found->second] : nullptr;
}

Status Checkpoint::unchanged() const {
  for (const MappedFile* file : mapped_) QUIRE_RETURN_IF_ERROR(file->unchanged());
  return {};
}

std::string Checkpoint::file_versions() const {
  std::string versions;
  for (const MappedFile* file : mapped_) versions += "file " + file->path() + " " + file->version() + "\n";
  return versions;
}

void Checkpoint::add_file(const MappedFile& file) {
  file_bytes_ += static_cast<int64_t>(file.bytes().size());
  files_.push_back(file.path());
  mapped_.push_back(&file);
}

void Checkpoint::set_tensors(std::vector<TensorRef> tensors) {
  tensors_ = std::move(tensors);
  index_by_name_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    QUIRE_CHECK(index_by_name_.emplace(tensors_[i].name, i).second);
  }
}

}  // namespace quire
