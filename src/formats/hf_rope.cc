#include "formats/hf_rope.h"

#include <cmath>

#include "formats/messages.h"

namespace quire {
namespace {

Result<double> require_factor(const HfJson& scaling) {
  QUIRE_ASSIGN_OR_RETURN(const auto factor, scaling.find_float("factor"));
  if (!factor) return scaling.error("factor", "is missing");
  return *factor;
}

// What a scaling's own keys leave open is taken from the top level of the configuration.
Result<int64_t> original_context(const HfJson& scaling, const HfJson& config) {
  for (const HfJson* object : {&scaling, &config}) {
    QUIRE_ASSIGN_OR_RETURN(const auto given, object->find_int("original_max_position_embeddings"));
    if (given) return *given;
  }
  return 0;
}

Status read_llama3(const HfJson& scaling, RopeParams* rope) {
  rope->scaling = RopeScaling::kLlama3;
  QUIRE_ASSIGN_OR_RETURN(const auto factor, scaling.find_float("factor"));
  QUIRE_ASSIGN_OR_RETURN(const auto low, scaling.find_float("low_freq_factor"));
  QUIRE_ASSIGN_OR_RETURN(const auto high, scaling.find_float("high_freq_factor"));
  rope->factor = factor.value_or(8.0);
  rope->low_freq_factor = low.value_or(1.0);
  rope->high_freq_factor = high.value_or(4.0);
  if (rope->original_context == 0) rope->original_context = 8192;
  return {};
}

Status read_yarn(const HfJson& scaling, RopeParams* rope) {
  rope->scaling = RopeScaling::kYarn;
  QUIRE_ASSIGN_OR_RETURN(rope->factor, require_factor(scaling));
  QUIRE_ASSIGN_OR_RETURN(const auto fast, scaling.find_float("beta_fast"));
  QUIRE_ASSIGN_OR_RETURN(const auto slow, scaling.find_float("beta_slow"));
  QUIRE_ASSIGN_OR_RETURN(const auto truncate, scaling.find_bool("truncate"));
  QUIRE_ASSIGN_OR_RETURN(rope->attention_factor, scaling.find_float("attention_factor"));
  QUIRE_ASSIGN_OR_RETURN(rope->mscale, scaling.find_float("mscale"));
  QUIRE_ASSIGN_OR_RETURN(rope->mscale_all_dim, scaling.find_float("mscale_all_dim"));
  rope->beta_fast = fast.value_or(32.0);
  rope->beta_slow = slow.value_or(1.0);
  rope->truncate = truncate.value_or(true);
  return {};
}

Status read_longrope(const HfJson& scaling, RopeParams* rope) {
  rope->scaling = RopeScaling::kLongrope;
  QUIRE_ASSIGN_OR_RETURN(const auto factor, scaling.find_float("factor"));
  rope->factor = factor.value_or(1.0);
  QUIRE_ASSIGN_OR_RETURN(rope->attention_factor, scaling.find_float("attention_factor"));
  QUIRE_ASSIGN_OR_RETURN(rope->short_factors, scaling.find_floats("short_factor"));
  QUIRE_ASSIGN_OR_RETURN(rope->long_factors, scaling.find_floats("long_factor"));
  return {};
}

Status read_scaling(const HfJson& scaling, const HfJson& config, RopeParams* rope) {
  QUIRE_ASSIGN_OR_RETURN(auto type, scaling.find_string("rope_type"));
  if (!type) {
    QUIRE_ASSIGN_OR_RETURN(type, scaling.find_string("type"));
  }
  if (!type || *type == "default") return {};
  QUIRE_ASSIGN_OR_RETURN(rope->original_context, original_context(scaling, config));
  if (*type == "llama3") return read_llama3(scaling, rope);
  if (*type == "yarn") return read_yarn(scaling, rope);
  if (*type == "longrope" || *type == "su") return read_longrope(scaling, rope);
  if (*type == "linear" || *type == "dynamic") {
    QUIRE_ASSIGN_OR_RETURN(rope->factor, require_factor(scaling));
    rope->scaling = *type == "dynamic" ? RopeScaling::kDynamic : RopeScaling::kLinear;
    if (*type == "linear" && rope->factor == 1.0) rope->scaling = RopeScaling::kNone;
    return {};
  }
  return unsupported(scaling.where() + ": the rope type " + quote(*type) +
                     " is unknown; supported are default, linear, dynamic, llama3, yarn, longrope");
}

Status read_fraction(const HfJson& object, Hparams* h) {
  QUIRE_ASSIGN_OR_RETURN(const auto fraction, object.find_float("partial_rotary_factor"));
  if (!fraction) return {};
  if (!(*fraction > 0.0 && *fraction <= 1.0)) return object.error("partial_rotary_factor", "is not within (0, 1]");
  h->rope_dim = static_cast<int64_t>(static_cast<double>(h->head_dim) * *fraction);
  return {};
}

// One object of the newer style: base and scaling together.
Status read_parameters(const HfJson& parameters, const HfJson& config, RopeParams* rope) {
  QUIRE_ASSIGN_OR_RETURN(const auto theta, parameters.find_float("rope_theta"));
  if (theta) rope->theta = *theta;
  return read_scaling(parameters, config, rope);
}

}  // namespace

Status read_hf_rope(const HfJson& config, const HfRopeDefaults& defaults, Hparams* h) {
  h->rope_dim = h->head_dim;
  h->rope.theta = defaults.theta;
  if (defaults.has_local) {
    h->rope_local.emplace();
    QUIRE_ASSIGN_OR_RETURN(const auto local_base, config.find_float("rope_local_base_freq"));
    h->rope_local->theta = local_base.value_or(defaults.local_theta);
  }
  QUIRE_ASSIGN_OR_RETURN(const auto theta, config.find_float("rope_theta"));
  if (theta) h->rope.theta = *theta;
  QUIRE_RETURN_IF_ERROR(read_fraction(config, h));

  QUIRE_ASSIGN_OR_RETURN(const auto parameters, config.find_object("rope_parameters"));
  if (!parameters) {
    QUIRE_ASSIGN_OR_RETURN(const auto scaling, config.find_object("rope_scaling"));
    return scaling ? read_scaling(*scaling, config, &h->rope) : Status();
  }
  QUIRE_ASSIGN_OR_RETURN(const auto full, parameters->find_object("full_attention"));
  QUIRE_ASSIGN_OR_RETURN(const auto sliding, parameters->find_object("sliding_attention"));
  QUIRE_RETURN_IF_ERROR(read_fraction(full ? *full : *parameters, h));
  if (!full && !sliding) return read_parameters(*parameters, config, &h->rope);
  if (full) QUIRE_RETURN_IF_ERROR(read_parameters(*full, config, &h->rope));
  if (!sliding) return {};
  if (!h->rope_local) h->rope_local.emplace();
  return read_parameters(*sliding, config, &*h->rope_local);
}

}  // namespace quire
