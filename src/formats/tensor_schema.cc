#include "formats/tensor_schema.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "formats/messages.h"

namespace quire {
namespace {

struct Expected {
  std::vector<int64_t> shape;
  Presence presence = Presence::kAlways;
  bool seen = false;
};
using Schema = std::map<std::string, Expected>;

void add_linear(Schema& schema, const std::string& name, int64_t out, int64_t in, Presence bias) {
  schema[name + ".weight"] = {{out, in}, Presence::kAlways};
  schema[name + ".bias"] = {{out}, bias};
}

void add_layer(Schema& schema, const std::string& prefix, const Hparams& h, const Family& family,
               const BiasRules& biases) {
  const int64_t q_rows = h.heads * h.head_dim;
  const int64_t kv_rows = h.kv_heads * h.head_dim;
  schema[prefix + "attn_norm.weight"] = {{h.hidden}};
  schema[prefix + "ffn_norm.weight"] = {{h.hidden}};
  add_linear(schema, prefix + "attn_q", q_rows, h.hidden, biases.qkv);
  add_linear(schema, prefix + "attn_k", kv_rows, h.hidden, biases.qkv);
  add_linear(schema, prefix + "attn_v", kv_rows, h.hidden, biases.qkv);
  add_linear(schema, prefix + "attn_output", h.hidden, q_rows, biases.output);
  add_linear(schema, prefix + "ffn_gate", h.ffn_hidden, h.hidden, biases.mlp);
  add_linear(schema, prefix + "ffn_up", h.ffn_hidden, h.hidden, biases.mlp);
  add_linear(schema, prefix + "ffn_down", h.hidden, h.ffn_hidden, biases.mlp);
  if (family.qk_norm) {
    schema[prefix + "attn_q_norm.weight"] = {{h.head_dim}};
    schema[prefix + "attn_k_norm.weight"] = {{h.head_dim}};
  }
  if (family.post_norms) {
    schema[prefix + "post_attention_norm.weight"] = {{h.hidden}};
    schema[prefix + "post_ffw_norm.weight"] = {{h.hidden}};
  }
}

Schema make_schema(const Hparams& h, const Family& family, const BiasRules& biases) {
  Schema schema;
  schema["token_embd.weight"] = {{h.vocab_size, h.hidden}};
  schema["output_norm.weight"] = {{h.hidden}};
  if (!h.tied_embeddings) schema["output.weight"] = {{h.vocab_size, h.hidden}};
  schema["rope_freqs.weight"] = {{h.rope_dim / 2}, Presence::kOptional};
  for (int64_t layer = 0; layer < h.layers; ++layer) {
    add_layer(schema, "blk." + std::to_string(layer) + ".", h, family, biases);
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
    if (expected.presence == Presence::kNever) {
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
