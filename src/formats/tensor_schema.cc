#include "formats/tensor_schema.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/messages.h"
#include "formats/layer_tensors.h"

namespace quire {
namespace {

struct Expected {
  std::vector<int64_t> shape;
  Presence presence = Presence::kAlways;
  bool seen = false;
};
using Schema = std::map<std::string, Expected>;

Schema make_schema(const Hparams& h, const Family& family, const BiasRules& biases) {
  Schema schema;
  schema["token_embd.weight"] = {{h.vocab_size, h.hidden}};
  schema["output_norm.weight"] = {{h.hidden}};
  if (!h.tied_embeddings) schema["output.weight"] = {{h.vocab_size, h.hidden}};
  schema["rope_freqs.weight"] = {{h.rope_dim / 2}, Presence::kOptional};
  for (int64_t layer = 0; layer < h.layers; ++layer) {
    for (const LayerTensorRow& row : layer_tensors()) {
      const Presence presence = row.presence(family, biases);
      // What a family never has is not its tensor; a bias may come as zeros.
      if (presence == Presence::kAbsent && row.kind != TensorKind::kBias) continue;
      schema[tensor_name(static_cast<size_t>(layer), row.id)] = {shape_of(row, h), presence};
    }
  }
  return schema;
}

bool is_zero(const TensorRef& bias) {
  constexpr int64_t kMostElements = int64_t{1} << 20;
  if (bias.rank != 1 || bias.quantized != nullptr || bias.columns() > kMostElements) return false;
  std::vector<float> values(static_cast<size_t>(bias.columns()));
  bias.decode_f32(0, 1, values.data());
  return std::ranges::all_of(values, [](float value) { return value == 0.0f; });
}

}  // namespace

Result<SchemaTensors> match_schema(const Hparams& hparams, const Family& family, const BiasRules& biases,
                                   std::vector<TensorRef> found, const SchemaNaming& naming) {
  const auto describe = [&](const std::string& name) {
    return naming.where + ": tensor " + quote(naming.spelling(name));
  };
  if (found.empty()) return invalid_argument(naming.where + ": holds no tensors of a model");
  Schema schema = make_schema(hparams, family, biases);
  SchemaTensors matched;
  for (TensorRef& tensor : found) {
    const auto entry = schema.find(tensor.name);
    if (entry == schema.end()) {
      matched.unused.push_back(std::move(tensor.name));
      continue;
    }
    Expected& expected = entry->second;
    const std::span shape(tensor.shape.data(), static_cast<size_t>(tensor.rank));
    if (expected.presence == Presence::kAbsent) {
      if (is_zero(tensor)) {  // old quantizers wrote one for every linear
        matched.unused.push_back(std::move(tensor.name));
        continue;
      }
      return unsupported(describe(tensor.name) + " is there, but a " + hparams.architecture +
                         " model with this configuration has no such bias");
    }
    if (!std::ranges::equal(shape, expected.shape)) {
      return corrupt(describe(tensor.name) + " has shape " + shape_text(shape) + ", not the " +
                     shape_text(expected.shape) + " that follows from the hyper-parameters");
    }
    if (std::exchange(expected.seen, true)) return corrupt(describe(tensor.name) + " occurs twice");
    matched.used.push_back(std::move(tensor));
  }
  for (const auto& [name, expected] : schema) {
    if (expected.presence == Presence::kAlways && !expected.seen) return corrupt(describe(name) + " is missing");
  }
  return matched;
}

}  // namespace quire
