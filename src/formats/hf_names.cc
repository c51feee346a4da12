#include "formats/hf_names.h"

#include <algorithm>
#include <span>

namespace quire {
namespace {

struct NamePair {
  std::string_view hf;
  std::string_view canonical;
};

constexpr NamePair kTop[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

// Modules of a layer; the rest of the name is "weight" or "bias".
constexpr NamePair kModules[] = {
    {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},   {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},       {"input_layernorm", "attn_norm"},
};
constexpr NamePair kQkNorms[] = {{"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"}};
constexpr NamePair kPreNorm[] = {{"post_attention_layernorm", "ffn_norm"}};
// Gemma normalises what attention and feed-forward return, which moves the meaning of post_attention_layernorm.
constexpr NamePair kPrePostNorms[] = {{"post_attention_layernorm", "post_attention_norm"},
                                      {"pre_feedforward_layernorm", "ffn_norm"},
                                      {"post_feedforward_layernorm", "post_ffw_norm"}};

constexpr std::string_view kHfLayer = "model.layers.";
constexpr std::string_view kCanonicalLayer = "blk.";

using Column = std::string_view NamePair::*;

std::string_view translate_module(std::string_view module, const Family& family, Column from, Column to) {
  const std::span<const NamePair> norms = family.post_norms ? std::span<const NamePair>(kPrePostNorms) : kPreNorm;
  const std::span<const NamePair> qk_norms =
      family.qk_norm ? std::span<const NamePair>(kQkNorms) : std::span<const NamePair>();
  for (const std::span<const NamePair> table : {std::span<const NamePair>(kModules), norms, qk_norms}) {
    const auto found = std::ranges::find(table, module, from);
    if (found != table.end()) return (*found).*to;
  }
  return {};
}

// Empty when `name` is no tensor of the family.
std::string translate(std::string_view name, const Family& family, Column from, Column to) {
  const auto* top = std::ranges::find(kTop, name, from);
  if (top != std::end(kTop)) return std::string((*top).*to);

  const bool from_hf = from == &NamePair::hf;
  const std::string_view prefix = from_hf ? kHfLayer : kCanonicalLayer;
  if (!name.starts_with(prefix)) return {};
  const std::string_view rest = name.substr(prefix.size());
  const size_t layer_end = std::min(rest.find('.'), rest.size());
  const std::string_view layer = rest.substr(0, layer_end);
  const size_t kind_at = rest.rfind('.');
  if (kind_at == std::string_view::npos || kind_at <= layer_end) return {};
  const std::string_view kind = rest.substr(kind_at);
  if (kind != ".weight" && kind != ".bias") return {};
  const std::string_view module =
      translate_module(rest.substr(layer_end + 1, kind_at - layer_end - 1), family, from, to);
  if (module.empty()) return {};
  std::string out(from_hf ? kCanonicalLayer : kHfLayer);
  return out.append(layer).append(".").append(module).append(kind);
}

}  // namespace

std::string canonical_from_hf(std::string_view hf_name, const Family& family) {
  constexpr std::string_view kOuter = "language_model.";        // language_model.model.layers.0...
  constexpr std::string_view kInner = "model.language_model.";  // model.language_model.layers.0...
  if (hf_name.starts_with(kOuter)) {
    hf_name.remove_prefix(kOuter.size());
  } else if (hf_name.starts_with(kInner)) {
    return translate("model." + std::string(hf_name.substr(kInner.size())), family, &NamePair::hf,
                     &NamePair::canonical);
  }
  return translate(hf_name, family, &NamePair::hf, &NamePair::canonical);
}

std::string hf_from_canonical(std::string_view canonical_name, const Family& family) {
  std::string name = translate(canonical_name, family, &NamePair::canonical, &NamePair::hf);
  return name.empty() ? std::string(canonical_name) : name;
}

}  // namespace quire
