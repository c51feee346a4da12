#include "formats/checkpoint.h"

#include <filesystem>
#include <system_error>

#include "base/check.h"
#include "formats/gguf_checkpoint.h"
#include "formats/hf_checkpoint.h"

namespace quire {

int64_t TensorRef::rows() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= shape[static_cast<size_t>(i)];
  return n;
}

std::string TensorRef::type_name() const {
  return quantized != nullptr ? quantized->name() : std::string(dtype_info(dtype).name);
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
  if (std::filesystem::is_directory(status)) return open_hf_checkpoint(path, parts);
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
