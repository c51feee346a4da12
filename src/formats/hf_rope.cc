#include "formats/hf_rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "base/messages.h"

namespace quire {
namespace {

constexpr const char* kOriginalContext = "original_max_position_embeddings";
constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";

// A kind of scaling, and the keys it reads beside those that each has.
struct RopeKind {
  std::string_view name;
  RopeScaling scaling;
  std::array<std::string_view, 8> keys;
};
constexpr RopeKind kKinds[] = {
    {"default", RopeScaling::kNone, {}},
    {"linear", RopeScaling::kLinear, {"factor"}},
    {"dynamic", RopeScaling::kDynamic, {"factor"}},
    {"llama3", RopeScaling::kLlama3, {"factor", "low_freq_factor", "high_freq_factor", kOriginalContext}},
    {"yarn",
     RopeScaling::kYarn,
     {"factor", kOriginalContext, "beta_fast", "beta_slow", "truncate", "attention_factor", "mscale",
      "mscale_all_dim"}},
    {"longrope",
     RopeScaling::kLongrope,
     {"factor", kOriginalContext, "attention_factor", "short_factor", "long_factor"}},
};
constexpr std::string_view kCommonKeys[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};

const RopeKind* kind_by_name(std::string_view name) {
  if (name == "su") name = "longrope";  // as Phi-3 first called it
  const auto* found = std::ranges::find(kKinds, name, &RopeKind::name);
  return found != std::end(kKinds) ? found : nullptr;
}

bool reads_key(const RopeKind& kind, std::string_view key) {
  return std::ranges::find(kCommonKeys, key) != std::end(kCommonKeys) ||
         std::ranges::find(kind.keys, key) != kind.keys.end();
}

// Reads the objects of one configuration; collects remarks.
class Reader {
 public:
  Reader(const HfJson& config, const HfRopeDefaults& defaults, Hparams* h, std::vector<std::string>* remarks)
      : config_(config), defaults_(defaults), h_(*h), remarks_(*remarks) {}

  Status read() {
    h_.rope_dim = h_.head_dim;
    QUIRE_ASSIGN_OR_RETURN(const auto scaling, config_.find_object("rope_scaling"));
    QUIRE_ASSIGN_OR_RETURN(const auto parameters, config_.find_object("rope_parameters"));
    const HfJson* older = scaling && !scaling->keys().empty() ? &*scaling : nullptr;
    const HfJson* newer = parameters && !parameters->keys().empty() ? &*parameters : nullptr;
    return defaults_.has_local ? read_two(older, newer) : read_one(older, newer);
  }

 private:
  void remark(const std::string& text) { remarks_.push_back(config_.where() + ": " + text); }

  // One rope for all layers.
  Status read_one(const HfJson* older, const HfJson* newer) {
    for (const HfJson* object : {older, newer}) {
      if (object != nullptr && (object->has(kFull) || object->has(kSliding))) {
        return unsupported(object->where() + ": has an object for each kind of layer, but the layers of a " +
                           h_.architecture + " model share one rope");
      }
    }
    if (older != nullptr && newer != nullptr) note_replaced(*older, *newer);
    const HfJson* chosen = older != nullptr ? older : newer;
    QUIRE_ASSIGN_OR_RETURN(h_.rope.theta, theta(chosen, "rope_theta", defaults_.theta));
    if (chosen == nullptr) return read_fraction(nullptr, kKinds[0]);
    QUIRE_ASSIGN_OR_RETURN(const auto outer_context, config_.find_int(kOriginalContext));
    return read_scaling(*chosen, outer_context, &h_.rope);
  }

  // One rope for layers that attend to everything, one for those with a window.
  Status read_two(const HfJson* older, const HfJson* newer) {
    std::optional<HfJson> full, sliding;
    if (newer != nullptr) {
      QUIRE_ASSIGN_OR_RETURN(full, newer->find_object(kFull));
      QUIRE_ASSIGN_OR_RETURN(sliding, newer->find_object(kSliding));
      if (!full && (!sliding || older != nullptr)) {
        return unsupported(newer->where() + ": has no object " + quote(kFull) + ", which a " + h_.architecture +
                           " model takes its rope from");
      }
    }
    if (older != nullptr) {
      if (full) note_replaced(*older, *full);
      // transformers' default has a rope_type already, which an older "type" does not replace.
      if (older->has("type") && !older->has("rope_type")) {
        remark("\"rope_scaling\" says \"type\": " + older->value_text("type") +
               ", which is read as its rope_type; transformers 5 leaves it out for " + h_.architecture);
      }
      full = full ? full->updated(*older) : *older;
    }
    h_.rope_local.emplace();
    QUIRE_ASSIGN_OR_RETURN(h_.rope.theta, theta(full ? &*full : nullptr, "rope_theta", defaults_.theta));
    QUIRE_ASSIGN_OR_RETURN(h_.rope_local->theta,
                           theta(sliding ? &*sliding : nullptr, "rope_local_base_freq", defaults_.local_theta));
    if (!full && !sliding) return read_fraction(nullptr, kKinds[0]);
    if (full) QUIRE_RETURN_IF_ERROR(read_scaling(*full, std::nullopt, &h_.rope));
    if (sliding) QUIRE_RETURN_IF_ERROR(read_scaling(*sliding, std::nullopt, &*h_.rope_local));
    return {};
  }

  // `older` (rope_scaling) wins over `newer`: names what of the latter is lost.
  void note_replaced(const HfJson& older, const HfJson& newer) {
    std::string lost;
    for (const std::string& key : newer.keys()) {
      if (older.same_value(newer, key)) continue;
      if (defaults_.has_local && !older.has(key)) continue;  // merged, not replaced
      lost += (lost.empty() ? "" : ", ") + quote(key) + ": " + newer.value_text(key);
    }
    if (lost.empty()) return;
    remark(
        "\"rope_scaling\" and \"rope_parameters\" contradict each other; \"rope_scaling\" is used, as transformers " +
        std::string("does, and not ") + lost);
  }

  // The base: of the object, else of the top level, else the family's.
  Result<double> theta(const HfJson* object, const std::string& outer_key, double otherwise) {
    QUIRE_ASSIGN_OR_RETURN(const auto outer, config_.find_float(outer_key));
    if (object == nullptr) return outer.value_or(otherwise);
    QUIRE_ASSIGN_OR_RETURN(const auto inner, object->find_float("rope_theta"));
    if (inner && outer && *inner != *outer) {
      remark(quote(outer_key) + " is " + config_.value_text(outer_key) + " at the top level, but rope_theta is " +
             object->value_text("rope_theta") + " in the rope's own object, which is used");
    }
    return inner ? *inner : outer.value_or(otherwise);
  }

  // `outer_context`: the top level's original_max_position_embeddings where it goes before the object's own.
  Status read_scaling(const HfJson& scaling, std::optional<int64_t> outer_context, RopeParams* rope) {
    QUIRE_ASSIGN_OR_RETURN(auto type, scaling.find_string("rope_type"));
    QUIRE_ASSIGN_OR_RETURN(const auto older_type, scaling.find_string("type"));
    if (type && older_type && *type != *older_type) {
      remarks_.push_back(scaling.where() + ": rope_type is " + quote(*type) + " and type is " + quote(*older_type) +
                         "; rope_type is used");
    }
    if (!type) type = older_type.value_or("default");
    const RopeKind* kind = kind_by_name(*type);
    if (kind == nullptr) {
      return unsupported(scaling.where() + ": the rope type " + quote(*type) +
                         " is unknown; supported are default, linear, dynamic, llama3, yarn, longrope");
    }
    for (const std::string& key : scaling.keys()) {
      if (reads_key(*kind, key)) continue;
      remarks_.push_back(scaling.where() + ": " + quote(key) + ": " + scaling.value_text(key) +
                         " has no effect on a rope of type " + std::string(kind->name));
    }
    QUIRE_RETURN_IF_ERROR(read_fraction(&scaling, *kind));
    QUIRE_RETURN_IF_ERROR(read_original_context(scaling, outer_context, *kind, rope));
    rope->scaling = kind->scaling;
    switch (kind->scaling) {
      case RopeScaling::kNone:
        return {};
      case RopeScaling::kLinear:
      case RopeScaling::kDynamic:
        QUIRE_RETURN_IF_ERROR(require(scaling, "factor", &rope->factor));
        if (kind->scaling == RopeScaling::kLinear && rope->factor == 1.0) rope->scaling = RopeScaling::kNone;
        return {};
      case RopeScaling::kLlama3:
        QUIRE_RETURN_IF_ERROR(require(scaling, "factor", &rope->factor));
        QUIRE_RETURN_IF_ERROR(require(scaling, "low_freq_factor", &rope->low_freq_factor));
        return require(scaling, "high_freq_factor", &rope->high_freq_factor);
      case RopeScaling::kYarn:
        return read_yarn(scaling, rope);
      case RopeScaling::kLongrope:
        return read_longrope(scaling, rope);
    }
    return {};
  }

  static Status require(const HfJson& scaling, const std::string& key, double* value) {
    QUIRE_ASSIGN_OR_RETURN(const auto given, scaling.find_float(key));
    if (!given) return scaling.error(key, "is missing");
    *value = *given;
    return {};
  }

  Status read_original_context(const HfJson& scaling, std::optional<int64_t> outer, const RopeKind& kind,
                               RopeParams* rope) {
    if (std::ranges::find(kind.keys, kOriginalContext) == kind.keys.end()) return {};
    QUIRE_ASSIGN_OR_RETURN(const auto inner, scaling.find_int(kOriginalContext));
    if (inner && outer && *inner != *outer) {
      remark(quote(kOriginalContext) + " is " + std::to_string(*outer) + " at the top level, which is used, and not " +
             std::to_string(*inner) + " of the rope's own object");
    }
    rope->original_context = outer ? *outer : inner.value_or(h_.context_length);
    return {};
  }

  Status read_yarn(const HfJson& scaling, RopeParams* rope) {
    QUIRE_ASSIGN_OR_RETURN(const auto factor, scaling.find_float("factor"));
    if (!factor && !scaling.names("factor")) return scaling.error("factor", "is missing");
    rope->factor =
        factor.value_or(static_cast<double>(h_.context_length) / static_cast<double>(rope->original_context));
    QUIRE_ASSIGN_OR_RETURN(const auto fast, scaling.find_float("beta_fast"));
    QUIRE_ASSIGN_OR_RETURN(const auto slow, scaling.find_float("beta_slow"));
    QUIRE_ASSIGN_OR_RETURN(const auto truncate, scaling.find_bool("truncate"));
    QUIRE_ASSIGN_OR_RETURN(rope->attention_factor, scaling.find_float("attention_factor"));
    QUIRE_ASSIGN_OR_RETURN(rope->mscale, scaling.find_float("mscale"));
    QUIRE_ASSIGN_OR_RETURN(rope->mscale_all_dim, scaling.find_float("mscale_all_dim"));
    // 0 counts as absent.
    if (fast && *fast != 0.0) rope->beta_fast = *fast;
    if (slow && *slow != 0.0) rope->beta_slow = *slow;
    rope->truncate = truncate.value_or(true);
    if (!rope->truncate && defaults_.has_local) {
      remarks_.push_back(scaling.where() + ": \"truncate\": false is obeyed; transformers 5 leaves it out for " +
                         h_.architecture);
    }
    return {};
  }

  static Status read_longrope(const HfJson& scaling, RopeParams* rope) {
    QUIRE_ASSIGN_OR_RETURN(const auto factor, scaling.find_float("factor"));
    rope->factor = factor.value_or(1.0);
    QUIRE_ASSIGN_OR_RETURN(rope->attention_factor, scaling.find_float("attention_factor"));
    QUIRE_ASSIGN_OR_RETURN(rope->short_factors, scaling.find_floats("short_factor"));
    QUIRE_ASSIGN_OR_RETURN(rope->long_factors, scaling.find_floats("long_factor"));
    return {};
  }

  // These families rotate whole heads: without scaling transformers ignores the key, with scaling it fails.
  Status read_fraction(const HfJson* object, const RopeKind& kind) {
    constexpr const char* kKey = "partial_rotary_factor";
    const HfJson& holder = object != nullptr && object->has(kKey) ? *object : config_;
    QUIRE_ASSIGN_OR_RETURN(const auto fraction, holder.find_float(kKey));
    if (!fraction || *fraction == 1.0) return {};
    const std::string what =
        quote(kKey) + " is " + holder.value_text(kKey) + ", but a " + h_.architecture + " model rotates whole heads";
    if (kind.scaling != RopeScaling::kNone) return unsupported(holder.where() + ": " + what);
    remarks_.push_back(holder.where() + ": " + what + "; the key is ignored, as in transformers");
    return {};
  }

  const HfJson& config_;
  const HfRopeDefaults& defaults_;
  Hparams& h_;
  std::vector<std::string>& remarks_;
};

}  // namespace

Status read_hf_rope(const HfJson& config, const HfRopeDefaults& defaults, Hparams* hparams,
                    std::vector<std::string>* remarks) {
  return Reader(config, defaults, hparams, remarks).read();
}

}  // namespace quire
