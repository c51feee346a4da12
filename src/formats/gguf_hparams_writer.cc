#include "formats/gguf_hparams_writer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace quire {
namespace {

constexpr int64_t kGemma3WindowPeriod = 6;
constexpr double kGemma3LocalRopeBase = 10000.0;

class Writer {
 public:
  Writer(const Hparams& hparams, const std::string& where) : h_(hparams), where_(where) {}

  Result<GgufKeyValues> write() {
    add_general();
    add_sizes();
    QUIRE_RETURN_IF_ERROR(add_rope());
    QUIRE_RETURN_IF_ERROR(add_window());
    add_attention();
    add_sampling();
    return std::move(entries_);
  }

 private:
  void set(const std::string& key, MetaValue value) { entries_.emplace_back(key, std::move(value)); }
  void set_own(const std::string& suffix, MetaValue value) { set(h_.architecture + "." + suffix, std::move(value)); }
  static MetaValue count(int64_t value) { return static_cast<uint64_t>(value); }

  Status no_key(const std::string& what) const {
    return unsupported(where_ + ": " + what + ", for which GGUF files of " + h_.architecture +
                       " have no key; write a Hugging Face directory instead");
  }

  void add_general() {
    set("general.architecture", h_.architecture);
    set("general.type", std::string("model"));
    // _name_or_path is often a path of the machine that trained.
    const std::string name = std::filesystem::path(h_.name).filename().string();
    if (!name.empty()) set("general.name", name);
  }

  void add_sizes() {
    set_own("context_length", count(h_.context_length));
    set_own("embedding_length", count(h_.hidden));
    set_own("block_count", count(h_.layers));
    set_own("feed_forward_length", count(h_.ffn_hidden));
    set_own("attention.head_count", count(h_.heads));
    set_own("attention.head_count_kv", count(h_.kv_heads));
    set_own("attention.key_length", count(h_.head_dim));
    set_own("attention.value_length", count(h_.head_dim));
    set_own("attention.layer_norm_rms_epsilon", static_cast<double>(h_.rms_norm_eps));
    set_own("vocab_size", count(h_.vocab_size));
  }

  Status add_rope() {
    if (h_.architecture == "llama" && h_.rope_dim != h_.head_dim) {
      return no_key("only " + std::to_string(h_.rope_dim) + " of " + std::to_string(h_.head_dim) +
                    " dimensions of a head rotate");
    }
    set_own("rope.dimension_count", count(h_.rope_dim));
    set_own("rope.freq_base", h_.rope.theta);
    switch (h_.rope.scaling) {
      case RopeScaling::kNone:
      case RopeScaling::kLlama3:  // factors in the tensor rope_freqs.weight
        break;
      case RopeScaling::kLinear:
        set_own("rope.scaling.type", std::string("linear"));
        set_own("rope.scaling.factor", h_.rope.factor);
        break;
      case RopeScaling::kYarn:
        QUIRE_RETURN_IF_ERROR(add_yarn());
        break;
      case RopeScaling::kLongrope:
      case RopeScaling::kDynamic:
        return no_key("the rope scaling is longrope or dynamic");
    }
    if (!h_.rope_local) return {};
    if (h_.rope_local->scaling != RopeScaling::kNone) return no_key("the rope of layers with a window is scaled");
    if (h_.architecture != "gemma3" || h_.rope_local->theta != kGemma3LocalRopeBase) {
      set_own("rope.freq_base_swa", h_.rope_local->theta);
    }
    return {};
  }

  // Readers multiply by 0.1 ln(factor) + 1 themselves; the key holds what is left.
  Status add_yarn() {
    const RopeParams& rope = h_.rope;
    if (!rope.truncate) return no_key("yarn's range is not rounded (truncate is false)");
    set_own("rope.scaling.type", std::string("yarn"));
    set_own("rope.scaling.factor", rope.factor);
    if (rope.original_context > 0) set_own("rope.scaling.original_context_length", count(rope.original_context));
    set_own("rope.scaling.yarn_beta_fast", rope.beta_fast);
    set_own("rope.scaling.yarn_beta_slow", rope.beta_slow);
    const auto magnitude = [&](double m) { return rope.factor > 1.0 ? 0.1 * m * std::log(rope.factor) + 1.0 : 1.0; };
    std::optional<double> whole = rope.attention_factor;
    if (!whole && rope.mscale.value_or(0.0) != 0.0 && rope.mscale_all_dim.value_or(0.0) != 0.0) {
      whole = magnitude(*rope.mscale) / magnitude(*rope.mscale_all_dim);
    }
    if (whole) set_own("rope.scaling.attn_factor", *whole / magnitude(1.0));
    return {};
  }

  Status add_window() {
    if (h_.sliding_window == 0) return {};
    set_own("attention.sliding_window", count(h_.sliding_window));
    bool by_default = true;  // readers know the pattern without the key
    for (size_t i = 0; i < h_.layer_slides.size(); ++i) {
      const bool usual = h_.architecture != "gemma3" || (i + 1) % kGemma3WindowPeriod != 0;
      by_default = by_default && h_.layer_slides[i] == usual;
    }
    if (!by_default) set_own("attention.sliding_window_pattern", h_.layer_slides);
    return {};
  }

  void add_attention() {
    if (h_.attention_scale) set_own("attention.scale", static_cast<double>(*h_.attention_scale));
    if (h_.attention_softcap != 0.0f) set_own("attn_logit_softcapping", static_cast<double>(h_.attention_softcap));
    if (h_.final_softcap != 0.0f) set_own("final_logit_softcapping", static_cast<double>(h_.final_softcap));
  }

  void add_sampling() {
    if (h_.default_temperature) set("general.sampling.temp", static_cast<double>(*h_.default_temperature));
    if (h_.default_top_k) set("general.sampling.top_k", static_cast<int64_t>(*h_.default_top_k));
    if (h_.default_top_p) set("general.sampling.top_p", static_cast<double>(*h_.default_top_p));
    if (h_.default_min_p) set("general.sampling.min_p", static_cast<double>(*h_.default_min_p));
    if (h_.default_repetition_penalty) {
      set("general.sampling.penalty_repeat", static_cast<double>(*h_.default_repetition_penalty));
    }
  }

  const Hparams& h_;
  const std::string& where_;
  GgufKeyValues entries_;
};

}  // namespace

Result<GgufKeyValues> gguf_hparam_entries(const Hparams& hparams, const std::string& where) {
  return Writer(hparams, where).write();
}

}  // namespace quire
