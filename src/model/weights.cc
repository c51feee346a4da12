#include "model/weights.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "model/check_codes.h"
#include "model/layer_members.h"
#include "model/packed_file.h"

namespace quire {
namespace {

const TensorRef& head_tensor(const ModelConfig& config, const Checkpoint& checkpoint) {
  const TensorRef* tensor = checkpoint.find(config.tied_embeddings ? "token_embd.weight" : "output.weight");
  QUIRE_CHECK(tensor != nullptr);
  return *tensor;
}

// The rows of a matrix in another type than it is stored in.
struct Reencoded {
  Reencoded(const TensorRef& tensor, DType to, Device& device)
      : dtype(to), stride(row_bytes(to, tensor.columns())), bytes(static_cast<size_t>(tensor.rows() * stride)) {
    device.parallel(tensor.rows(), [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(tensor.columns()));
      for (int64_t row = begin; row < end; ++row) {
        tensor.decode_f32(row, 1, values.data());
        dtype_info(to).encode(values.data(), tensor.columns() / dtype_info(to).block_elements,
                              bytes.data() + row * stride);
      }
    });
  }
  LinearSource source(const TensorRef& tensor) const {
    LinearSource source = {.type = dtype, .n = tensor.rows(), .k = tensor.columns()};
    source.row = [this](int64_t row) { return bytes.data() + row * stride; };
    return source;
  }

  DType dtype;
  int64_t stride;
  std::vector<std::byte> bytes;
};

// Walks the tensors of a model in one order, for counting, listing and loading alike: what is counted is what is
// taken. A visitor sees each matrix and vector with the place it goes to.
template <typename Matrix, typename Vector>
void visit_weights(const ModelConfig& config, const Checkpoint& checkpoint, ModelWeights& weights, Matrix&& matrix,
                   Vector&& vector) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    LayerWeights& layer = weights.layers[i];
    for (const LayerTensorRow& row : layer_tensors()) {
      const TensorRef* tensor = checkpoint.find(tensor_name(i, row.id));
      if (row.kind == TensorKind::kLinear) {
        matrix(tensor, layer.*linear_member(row.id));
      } else {
        vector(tensor, layer.*vector_member(row.id));
      }
    }
  }
  vector(checkpoint.find("output_norm.weight"), weights.output_norm);
  matrix(&head_tensor(config, checkpoint), weights.head);
}

ModelWeights empty_weights(const ModelConfig& config) {
  ModelWeights weights;
  weights.layers.resize(config.layers.size());
  return weights;
}

// Writes the packed file; what became of it.
std::string keep(const PackedFile& file, const WeightOptions& options, const ModelWeights& weights, Device& device) {
  const Status kept = file.write(device, weights.memory);
  if (kept.ok()) return "packed weights kept in " + options.packed_file;
  return kept.message() + "; going on without a pack cache (see --pack-cache)";
}

}  // namespace

LinearSource linear_source(const TensorRef& tensor) {
  LinearSource source = {.type = tensor.type(), .n = tensor.rows(), .k = tensor.columns()};
  if (const QuantizedLinear* quantized = tensor.quantized.get()) {
    source.codes = [quantized](int64_t first, int64_t rows, const CodeRows& out) { quantized->read(first, rows, out); };
    if (!quantized->order().empty()) source.order = quantized->order().data();
  } else {
    source.row = [&tensor](int64_t row) { return tensor.row(row); };
  }
  return source;
}

Status check_head(const ModelConfig& config, const Checkpoint& checkpoint, std::optional<DType> head) {
  if (!head.has_value()) return {};
  const TensorRef& tensor = head_tensor(config, checkpoint);
  const DTypeInfo& to = dtype_info(*head);
  if (tensor.columns() % to.block_elements == 0) return {};
  return unsupported("--head " + std::string(to.name) + ": its blocks have " + std::to_string(to.block_elements) +
                     " columns, which do not divide the " + std::to_string(tensor.columns()) + " of " + tensor.name +
                     "; use --head q8_0");
}

int64_t weight_bytes(const ModelConfig& config, const Checkpoint& checkpoint, std::optional<DType> head,
                     const DeviceSizes& sizes) {
  ModelWeights weights = empty_weights(config);
  Arena count;
  visit_weights(
      config, checkpoint, weights,
      [&](const TensorRef* tensor, LinearWeight& weight) {
        if (tensor == nullptr) return;
        const WeightType type = &weight == &weights.head && head ? *head : tensor->type();
        count.take<std::byte>(sizes.packed_bytes(type, tensor->rows(), tensor->columns()));
      },
      [&](const TensorRef* tensor, const float*&) {
        if (tensor != nullptr) count.take<float>(tensor->rows() * tensor->columns());
      });
  return count.used();
}

Result<ModelWeights> load_weights(const ModelConfig& config, const Checkpoint& checkpoint, const WeightOptions& options,
                                  Device& device, const std::function<void(double)>& progress) {
  ModelWeights weights = empty_weights(config);
  const int64_t total = weight_bytes(config, checkpoint, options.head, device.sizes());
  QUIRE_ASSIGN_OR_RETURN(weights.memory, Buffer::allocate(total, "the weights"));
  std::optional<PackedFile> file;
  if (!options.packed_file.empty()) {
    file.emplace(options.packed_file, checkpoint, options.head, device.sizes());
    PackedFile::Reading reading = file->read(device, weights.memory);
    weights.from_packed_file = reading.filled;
    if (!reading.note.empty()) {
      weights.notes.push_back(std::move(reading.note));
      // Packing leaves gaps as they are, and they are zero.
      QUIRE_ASSIGN_OR_RETURN(weights.memory, Buffer::allocate(total, "the weights"));
    }
  }
  const bool packed = weights.from_packed_file;
  Arena arena(weights.memory.data());
  Status checked;
  visit_weights(
      config, checkpoint, weights,
      [&](const TensorRef* tensor, LinearWeight& weight) {
        if (tensor == nullptr || !checked.ok()) return;
        if (!packed) checked = check_codes(*tensor, device, checkpoint.path());
        const LinearSource source = linear_source(*tensor);
        const WeightType type = &weight == &weights.head && options.head ? *options.head : source.type;
        auto* memory = arena.take<std::byte>(device.sizes().packed_bytes(type, source.n, source.k));
        if (packed) {
          weight = {.type = type, .n = source.n, .k = source.k, .data = memory};
          if (type.ordered) weight.order = source.order;
        } else if (type == source.type) {
          weight = device.pack(source, memory);
        } else {
          weight = device.pack(Reencoded(*tensor, type.dtype, device).source(*tensor), memory);
        }
        if (progress) progress(static_cast<double>(arena.used()) / static_cast<double>(total));
      },
      [&](const TensorRef* tensor, const float*& vector) {
        if (tensor == nullptr) return;
        float* values = arena.take<float>(tensor->rows() * tensor->columns());
        if (!packed) tensor->decode_f32(0, tensor->rows(), values);
        vector = values;
      });
  QUIRE_RETURN_IF_ERROR(checkpoint.unchanged());  // first: it may be why
  QUIRE_RETURN_IF_ERROR(checked);
  QUIRE_CHECK(arena.used() == total);
  weights.embedding = checkpoint.find("token_embd.weight");
  if (file.has_value())
    weights.notes.push_back(packed ? "weights copied from " + options.packed_file
                                   : keep(*file, options, weights, device));
  return weights;
}

Result<LinearWeight> pack_stored_head(const ModelConfig& config, const Checkpoint& checkpoint, Device& device,
                                      Buffer& memory) {
  const TensorRef& tensor = head_tensor(config, checkpoint);
  QUIRE_ASSIGN_OR_RETURN(
      memory,
      Buffer::allocate(device.sizes().packed_bytes(tensor.type(), tensor.rows(), tensor.columns()), "the stored head"));
  return device.pack(linear_source(tensor), memory.data());
}

LinearReaders linear_readers(const ModelConfig& config, const Checkpoint& checkpoint, std::optional<DType> head) {
  LinearReaders readers;
  auto add = [&](std::vector<WeightType>& to, const std::string& name) {
    const TensorRef* tensor = checkpoint.find(name);
    if (tensor != nullptr && std::find(to.begin(), to.end(), tensor->type()) == to.end()) to.push_back(tensor->type());
  };
  for (size_t i = 0; i < config.layers.size(); ++i) {
    for (const LayerTensorRow& row : layer_tensors()) {
      if (row.kind == TensorKind::kLinear) add(readers.of(row.input), tensor_name(i, row.id));
    }
  }
  readers.head.push_back(head_tensor(config, checkpoint).type());
  if (head.has_value() && WeightType(*head) != readers.head.front()) readers.head.push_back(*head);
  return readers;
}

}  // namespace quire
