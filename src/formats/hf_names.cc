#include "formats/hf_names.h"

#include <algorithm>

#include "formats/layer_tensors.h"

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

constexpr std::string_view kHfLayer = "model.layers.";
constexpr std::string_view kCanonicalLayer = "blk.";

using Column = std::string_view NamePair::*;

// The tensor of a layer by its name in one format, in the other; empty: there is none.
std::string_view translate_in_layer(std::string_view name, const Family& family, bool from_hf) {
  const LayerTensorRow* row = from_hf ? layer_tensor_by_hf_name(name, family) : layer_tensor_by_name(name);
  if (row == nullptr) return {};
  return from_hf ? row->name : hf_name_of(*row, family);
}

// Empty when `name` is no tensor of the family.
std::string translate(std::string_view name, const Family& family, Column from, Column to) {
  const auto* top = std::ranges::find(kTop, name, from);
  if (top != std::end(kTop)) return std::string((*top).*to);

  const bool from_hf = from == &NamePair::hf;
  const std::string_view prefix = from_hf ? kHfLayer : kCanonicalLayer;
  if (!name.starts_with(prefix)) return {};
  const std::string_view rest = name.substr(prefix.size());
  const size_t layer_end = rest.find('.');
  if (layer_end == std::string_view::npos) return {};
  const std::string_view translated = translate_in_layer(rest.substr(layer_end + 1), family, from_hf);
  if (translated.empty()) return {};
  std::string out(from_hf ? kCanonicalLayer : kHfLayer);
  return out.append(rest.substr(0, layer_end)).append(".").append(translated);
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
