#include "formats/hparams_check.h"

#include <cmath>
#include <string_view>

namespace quire {
namespace {

// Far above any model, low enough that products of three of them fit 64 bits.
constexpr int64_t kMaxVocab = int64_t{1} << 24;
constexpr int64_t kMaxContext = int64_t{1} << 30;
constexpr int64_t kMaxHidden = int64_t{1} << 20;
constexpr int64_t kMaxHeads = 4096;

Status check_range(const std::string& where, std::string_view what, int64_t value, int64_t max) {
  if (value >= 1 && value <= max) return {};
  return corrupt(where + ": the " + std::string(what) + " is " + std::to_string(value) + ", not within 1.." +
                 std::to_string(max));
}

Status check_positive(const std::string& where, std::string_view what, double value) {
  if (std::isfinite(value) && value > 0.0) return {};
  return corrupt(where + ": the " + std::string(what) + " is " + std::to_string(value) + ", not a positive number");
}

Status check_factors(const std::string& where, const std::vector<float>& factors, int64_t rope_dim) {
  if (static_cast<int64_t>(factors.size()) != rope_dim / 2) {
    return corrupt(where + ": longrope has " + std::to_string(factors.size()) + " factors, not one per pair of the " +
                   std::to_string(rope_dim) + " rotary dimensions");
  }
  for (const float factor : factors) QUIRE_RETURN_IF_ERROR(check_positive(where, "longrope factor", factor));
  return {};
}

Status check_rope(const std::string& where, const RopeParams& rope, int64_t rope_dim) {
  QUIRE_RETURN_IF_ERROR(check_positive(where, "rope base", rope.theta));
  QUIRE_RETURN_IF_ERROR(check_positive(where, "rope scaling factor", rope.factor));
  QUIRE_RETURN_IF_ERROR(check_positive(where, "rope low_freq_factor", rope.low_freq_factor));
  QUIRE_RETURN_IF_ERROR(check_positive(where, "rope high_freq_factor", rope.high_freq_factor));
  QUIRE_RETURN_IF_ERROR(check_positive(where, "rope beta_fast", rope.beta_fast));
  QUIRE_RETURN_IF_ERROR(check_positive(where, "rope beta_slow", rope.beta_slow));
  if (rope.attention_factor) {
    QUIRE_RETURN_IF_ERROR(check_positive(where, "rope attention factor", *rope.attention_factor));
  }
  if (rope.mscale && !std::isfinite(*rope.mscale)) return corrupt(where + ": the rope mscale is not a number");
  if (rope.mscale_all_dim && !std::isfinite(*rope.mscale_all_dim)) {
    return corrupt(where + ": the rope mscale_all_dim is not a number");
  }
  if (rope.original_context < 0 || rope.original_context > kMaxContext) {
    return corrupt(where + ": the original context of rope scaling is " + std::to_string(rope.original_context));
  }
  if (rope.scaling == RopeScaling::kLlama3 && rope.high_freq_factor <= rope.low_freq_factor) {
    return corrupt(where + ": llama3 rope scaling needs high_freq_factor > low_freq_factor");
  }
  if (rope.scaling == RopeScaling::kYarn && rope.theta <= 1.0) {
    return corrupt(where + ": yarn rope scaling needs a base above 1");
  }
  if (rope.scaling == RopeScaling::kLongrope) {
    QUIRE_RETURN_IF_ERROR(check_factors(where, rope.short_factors, rope_dim));
    QUIRE_RETURN_IF_ERROR(check_factors(where, rope.long_factors, rope_dim));
  }
  return {};
}

Status check_attention(const std::string& where, const Hparams& h) {
  if (h.heads % h.kv_heads != 0) {
    return corrupt(where + ": " + std::to_string(h.heads) + " query heads cannot share " + std::to_string(h.kv_heads) +
                   " key heads evenly");
  }
  if (h.head_dim % 2 != 0) return corrupt(where + ": the head size " + std::to_string(h.head_dim) + " is odd");
  if (h.rope_dim < 2 || h.rope_dim % 2 != 0 || h.rope_dim > h.head_dim) {
    return corrupt(where + ": " + std::to_string(h.rope_dim) + " rotary dimensions do not fit a head of " +
                   std::to_string(h.head_dim));
  }
  if (h.attention_scale) QUIRE_RETURN_IF_ERROR(check_positive(where, "attention scale", *h.attention_scale));
  if (!(h.attention_softcap >= 0.0f) || !std::isfinite(h.attention_softcap) || !(h.final_softcap >= 0.0f) ||
      !std::isfinite(h.final_softcap)) {
    return corrupt(where + ": a logit soft cap is negative or not a number");
  }
  if (static_cast<int64_t>(h.layer_slides.size()) != h.layers) {
    return corrupt(where + ": the sliding-window pattern names " + std::to_string(h.layer_slides.size()) +
                   " layers, but the model has " + std::to_string(h.layers));
  }
  for (const bool slides : h.layer_slides) {
    if (slides && h.sliding_window < 1) {
      return corrupt(where + ": a layer uses a sliding window, but its size is " + std::to_string(h.sliding_window));
    }
  }
  return {};
}

}  // namespace

Status check_hparams(const Hparams& h, const std::string& where) {
  QUIRE_RETURN_IF_ERROR(check_range(where, "vocabulary size", h.vocab_size, kMaxVocab));
  QUIRE_RETURN_IF_ERROR(check_range(where, "context length", h.context_length, kMaxContext));
  QUIRE_RETURN_IF_ERROR(check_range(where, "hidden size", h.hidden, kMaxHidden));
  QUIRE_RETURN_IF_ERROR(check_range(where, "feed-forward size", h.ffn_hidden, kMaxHidden));
  QUIRE_RETURN_IF_ERROR(check_range(where, "number of layers", h.layers, kMaxLayers));
  QUIRE_RETURN_IF_ERROR(check_range(where, "number of query heads", h.heads, kMaxHeads));
  QUIRE_RETURN_IF_ERROR(check_range(where, "number of key heads", h.kv_heads, kMaxHeads));
  QUIRE_RETURN_IF_ERROR(check_range(where, "head size", h.head_dim, kMaxReadHeadDim));
  QUIRE_RETURN_IF_ERROR(check_positive(where, "norm epsilon", h.rms_norm_eps));
  QUIRE_RETURN_IF_ERROR(check_attention(where, h));
  QUIRE_RETURN_IF_ERROR(check_rope(where, h.rope, h.rope_dim));
  if (h.rope_local) QUIRE_RETURN_IF_ERROR(check_rope(where, *h.rope_local, h.rope_dim));
  for (const int32_t id : h.eos_token_ids) {
    if (id < 0 || id >= h.vocab_size) {
      return corrupt(where + ": the end-of-text token " + std::to_string(id) + " is outside the vocabulary of " +
                     std::to_string(h.vocab_size));
    }
  }
  return {};
}

}  // namespace quire
