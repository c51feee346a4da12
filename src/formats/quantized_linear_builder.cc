// Checks the tensors of a quantized linear against each other and its scheme.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/messages.h"
#include "formats/quantized_linear.h"
#include "tensor/half.h"

namespace quire {
namespace {

using Layout = QuantScheme::Layout;

constexpr std::array<std::string_view, 10> kParts = {"qweight",         "qzeros",        "scales",
                                                     "g_idx",           "weight_packed", "weight_scale",
                                                     "weight_shape",    "weight_g_idx",  "weight_zero_point",
                                                     "weight_scale_inv"};

std::span<const std::string_view> parts_of(Layout layout) {
  static constexpr std::string_view kGptq[] = {"qweight", "qzeros", "scales", "g_idx"};
  static constexpr std::string_view kAwq[] = {"qweight", "qzeros", "scales"};
  static constexpr std::string_view kPacked[] = {"weight_packed", "weight_scale", "weight_shape", "weight_zero_point",
                                                 "weight_g_idx"};
  static constexpr std::string_view kBytes[] = {"weight", "weight_scale", "weight_zero_point"};
  static constexpr std::string_view kFp8[] = {"weight", "weight_scale", "weight_scale_inv"};
  switch (layout) {
    case Layout::kGptq:
      return kGptq;
    case Layout::kAwq:
      return kAwq;
    case Layout::kPacked:
      return kPacked;
    case Layout::kInt8:
      return kBytes;
    case Layout::kFp8:
      break;
  }
  return kFp8;
}

template <typename List>
bool holds(const List& list, std::string_view part) {
  return std::find(list.begin(), list.end(), part) != list.end();
}

}  // namespace

bool is_quantized_part(std::string_view part, std::string_view dtype) {
  if (part == "weight") return dtype == "I8" || dtype == "F8_E4M3";
  return holds(kParts, part);
}

class QuantizedLinearBuilder {
 public:
  QuantizedLinearBuilder(const QuantScheme& scheme, const QuantizedParts& parts, const std::string& where)
      : parts_(parts), where_(where), out_(std::make_shared<QuantizedLinear>()) {
    out_->scheme_ = scheme;
  }

  Result<std::shared_ptr<const QuantizedLinear>> build() {
    QUIRE_RETURN_IF_ERROR(check_parts());
    QUIRE_RETURN_IF_ERROR(read_codes());
    const int64_t group = out_->scheme_.group;
    out_->group_ = group == 0 || group >= out_->k_ ? out_->k_ : group;
    QUIRE_RETURN_IF_ERROR(read_scales());
    QUIRE_RETURN_IF_ERROR(read_zeros());
    QUIRE_RETURN_IF_ERROR(read_order());
    set_type();
    return std::shared_ptr<const QuantizedLinear>(std::move(out_));
  }

 private:
  using Shape = std::vector<int64_t>;

  const QuantScheme& scheme() const { return out_->scheme_; }
  int64_t groups() const { return out_->stored_groups(); }
  const SafetensorsEntry* find(std::string_view part) const {
    const auto found = parts_.find(part);
    return found != parts_.end() ? found->second : nullptr;
  }
  Status bad(const SafetensorsEntry& part, const std::string& what) const {
    return corrupt(where_ + ": tensor " + quote(part.name) + " " + what);
  }

  Result<const SafetensorsEntry*> need(std::string_view part) const {
    if (const SafetensorsEntry* found = find(part)) return found;
    return corrupt(where_ + ": the tensor " + quote(part) + " of this " + scheme().method +
                   " module is missing; the download may be incomplete");
  }

  Status check_parts() {
    const std::span<const std::string_view> known = parts_of(scheme().layout);
    for (const auto& [part, entry] : parts_) {
      if (!holds(known, part)) {
        return bad(*entry, "does not belong to a module that is stored as " + scheme().method +
                               ", which is what the quantization settings say it is");
      }
      if (std::ranges::find(entry->shape, 0) != entry->shape.end()) return bad(*entry, "is empty");
      out_->bytes_ += entry->bytes;
    }
    return {};
  }

  Status check_type(const SafetensorsEntry& part, std::initializer_list<std::string_view> types) const {
    if (std::find(types.begin(), types.end(), part.dtype) != types.end()) return {};
    std::string names;
    for (const std::string_view type : types) names += (names.empty() ? "" : " or ") + std::string(type);
    return bad(part, "has type " + part.dtype + ", not " + names);
  }

  Status check_shape(const SafetensorsEntry& part, const Shape& shape) const {
    if (part.shape == shape) return {};
    return bad(part, "has shape " + shape_text(part.shape) + ", not the " + shape_text(shape) + " that follows from " +
                         std::to_string(out_->n_) + " x " + std::to_string(out_->k_) + " weights of " +
                         std::to_string(scheme().bits) + " bits" +
                         (out_->group_ > 0 ? " in groups of " + std::to_string(out_->group_) : ""));
  }

  Status check_matrix(const SafetensorsEntry& part) const {
    if (part.shape.size() == 2) return {};
    return bad(part, "has " + std::to_string(part.shape.size()) + " dimensions, not 2");
  }

  Status read_codes() {
    switch (scheme().layout) {
      case Layout::kGptq:
        return read_gptq_codes();
      case Layout::kAwq:
        return read_awq_codes();
      case Layout::kPacked:
        return read_packed_codes();
      case Layout::kInt8:
      case Layout::kFp8:
        break;
    }
    QUIRE_ASSIGN_OR_RETURN(const SafetensorsEntry* weight, need("weight"));
    QUIRE_RETURN_IF_ERROR(check_type(*weight, {scheme().layout == Layout::kInt8 ? "I8" : "F8_E4M3"}));
    QUIRE_RETURN_IF_ERROR(check_matrix(*weight));
    take_codes(*weight, weight->shape[0], weight->shape[1]);
    return {};
  }

  void take_codes(const SafetensorsEntry& part, int64_t n, int64_t k) {
    out_->codes_ = part.data;
    out_->n_ = n;
    out_->k_ = k;
  }

  Status read_gptq_codes() {
    QUIRE_ASSIGN_OR_RETURN(const SafetensorsEntry* words, need("qweight"));
    QUIRE_RETURN_IF_ERROR(check_type(*words, {"I32"}));
    QUIRE_RETURN_IF_ERROR(check_matrix(*words));
    const int bits = scheme().bits;
    if (words->shape[0] % bits != 0 || words->shape[1] * bits % 32 != 0) {
      return bad(*words, "has shape " + shape_text(words->shape) + ", which does not hold whole words of " +
                             std::to_string(bits) + "-bit weights; the settings may state the wrong bits");
    }
    take_codes(*words, words->shape[1], words->shape[0] / bits * 32);
    return {};
  }

  Status read_awq_codes() {
    QUIRE_ASSIGN_OR_RETURN(const SafetensorsEntry* words, need("qweight"));
    QUIRE_RETURN_IF_ERROR(check_type(*words, {"I32"}));
    QUIRE_RETURN_IF_ERROR(check_matrix(*words));
    take_codes(*words, words->shape[1] * 8, words->shape[0]);
    return {};
  }

  Status read_packed_codes() {
    QUIRE_ASSIGN_OR_RETURN(const SafetensorsEntry* words, need("weight_packed"));
    QUIRE_RETURN_IF_ERROR(check_type(*words, {"I32"}));
    QUIRE_RETURN_IF_ERROR(check_matrix(*words));
    QUIRE_ASSIGN_OR_RETURN(const SafetensorsEntry* shape, need("weight_shape"));
    QUIRE_RETURN_IF_ERROR(check_type(*shape, {"I64", "I32"}));
    if (shape->shape != Shape{2}) return bad(*shape, "does not hold two numbers");
    int64_t sizes[2];
    for (int i = 0; i < 2; ++i) {
      if (shape->dtype == "I64") {
        std::memcpy(&sizes[i], shape->data + 8 * i, 8);
      } else {
        int32_t narrow;
        std::memcpy(&narrow, shape->data + 4 * i, 4);
        sizes[i] = narrow;
      }
    }
    const int64_t per_word = 32 / scheme().bits;
    const int64_t most = words->shape[1] * per_word;
    if (sizes[0] != words->shape[0] || sizes[1] > most || sizes[1] <= most - per_word) {
      return bad(*shape, "says " + shape_text(sizes) + ", but the packed weights have shape " +
                             shape_text(words->shape) + " of " + std::to_string(per_word) + " a word");
    }
    take_codes(*words, sizes[0], sizes[1]);
    return {};
  }

  Status read_scales() {
    const bool along_rows = scheme().layout == Layout::kGptq || scheme().layout == Layout::kAwq;
    const bool inverse = scheme().layout == Layout::kFp8 && find("weight_scale_inv") != nullptr;
    if (inverse && find("weight_scale") != nullptr) {
      return bad(*find("weight_scale"), "is there beside weight_scale_inv");
    }
    QUIRE_ASSIGN_OR_RETURN(const SafetensorsEntry* scales, need(along_rows ? "scales"
                                                                : inverse  ? "weight_scale_inv"
                                                                           : "weight_scale"));
    QUIRE_RETURN_IF_ERROR(check_type(*scales, {"F16", "BF16", "F32"}));
    out_->type_.dtype = scales->dtype == "F16" ? DType::kF16 : scales->dtype == "BF16" ? DType::kBF16 : DType::kF32;
    out_->scales_ = scales->data;
    const int64_t n = out_->n_;
    const int64_t g = groups();
    if (along_rows) {
      if (scheme().layout == Layout::kAwq) QUIRE_RETURN_IF_ERROR(check_groups_divide(*scales));
      QUIRE_RETURN_IF_ERROR(check_shape(*scales, {g, n}));
      out_->row_step_ = 1;
      out_->group_step_ = n;
    } else if (scheme().block_rows > 0) {
      QUIRE_RETURN_IF_ERROR(check_shape(*scales, {(n + scheme().block_rows - 1) / scheme().block_rows, g}));
      out_->scale_rows_ = scheme().block_rows;
      out_->row_step_ = g;
      out_->group_step_ = 1;
    } else if (g > 1) {
      QUIRE_RETURN_IF_ERROR(check_groups_divide(*scales));
      QUIRE_RETURN_IF_ERROR(check_shape(*scales, {n, g}));
      out_->row_step_ = g;
      out_->group_step_ = 1;
    } else if (scales->bytes != row_bytes(out_->type_.dtype, 1)) {
      if (scales->shape != Shape{n}) QUIRE_RETURN_IF_ERROR(check_shape(*scales, {n, 1}));
      out_->row_step_ = 1;
    }
    return check_scales(*scales);
  }

  Status check_groups_divide(const SafetensorsEntry& scales) const {
    if (out_->k_ % out_->group_ == 0) return {};
    return bad(scales, "goes with groups of " + std::to_string(out_->group_) + ", which do not divide the " +
                           std::to_string(out_->k_) + " columns");
  }

  Status check_scales(const SafetensorsEntry& scales) const {
    const int64_t size = row_bytes(out_->type_.dtype, 1);
    const uint32_t exponent = out_->type_.dtype == DType::kF16    ? 0x7c00
                              : out_->type_.dtype == DType::kBF16 ? 0x7f80
                                                                  : 0x7f800000;
    const uint32_t magnitude = size == 2 ? 0x7fff : 0x7fffffff;
    for (int64_t at = 0; at < scales.bytes; at += size) {
      const uint32_t bits = size == 2 ? load_u16(scales.data + at) : load_u32(scales.data + at);
      if ((bits & exponent) == exponent)
        return bad(scales, "holds an infinity or NaN: the quantization failed or the file is damaged");
      if ((bits & magnitude) == 0)
        return bad(scales,
                   "holds a scale of 0, which tools do not write: the quantization failed or the file is damaged");
    }
    return {};
  }

  Status read_zeros() {
    const bool words = scheme().layout == Layout::kGptq || scheme().layout == Layout::kAwq;
    const SafetensorsEntry* zeros = find(words ? "qzeros" : "weight_zero_point");
    if (scheme().layout == Layout::kFp8) return {};
    if (zeros == nullptr) {
      const bool needed = scheme().layout == Layout::kGptq || !scheme().symmetric;
      return needed ? need(words ? "qzeros" : "weight_zero_point").status() : Status();
    }
    const int64_t n = out_->n_;
    if (scheme().layout == Layout::kInt8) {
      QUIRE_RETURN_IF_ERROR(check_type(*zeros, {"I8"}));
      if (zeros->shape != Shape{n} || groups() > 1) QUIRE_RETURN_IF_ERROR(check_shape(*zeros, {n, groups()}));
    } else {
      QUIRE_RETURN_IF_ERROR(check_type(*zeros, {"I32"}));
      const int64_t packed = (n * scheme().bits + 31) / 32;
      QUIRE_RETURN_IF_ERROR(check_shape(*zeros, words ? Shape{groups(), packed} : Shape{packed, groups()}));
    }
    out_->zeros_ = zeros->data;
    return drop_constant_zeros(*zeros);
  }

  // Zero points that are all 2^(bits - 1) need no memory.
  Status drop_constant_zeros(const SafetensorsEntry& zeros) {
    const int middle = 1 << (scheme().bits - 1);
    bool constant = true;
    for (int64_t g = 0; g < groups(); ++g) {
      for (int64_t row = 0; row < out_->n_; ++row) {
        const int zero = out_->zero_at(row, g);
        if (zero == middle) continue;
        constant = false;
        if (!scheme().symmetric) return {};
        return bad(zeros, "holds the zero point " + std::to_string(zero) + " where symmetric " +
                              std::to_string(scheme().bits) + "-bit weights have " + std::to_string(middle) +
                              (scheme().layout == Layout::kGptq
                                   ? "; the settings may state the wrong checkpoint_format (gptq, gptq_v2) or sym"
                                   : "; the settings may wrongly say symmetric"));
      }
    }
    if (constant) out_->zeros_ = nullptr;
    return {};
  }

  Status read_order() {
    const SafetensorsEntry* entry = find(scheme().layout == Layout::kPacked ? "weight_g_idx" : "g_idx");
    if (entry == nullptr) return {};
    const int64_t k = out_->k_;
    QUIRE_RETURN_IF_ERROR(check_type(*entry, {"I32"}));
    QUIRE_RETURN_IF_ERROR(check_shape(*entry, {k}));
    std::vector<int32_t> ids(static_cast<size_t>(k));
    std::memcpy(ids.data(), entry->data, static_cast<size_t>(entry->bytes));
    if (scheme().layout == Layout::kPacked && std::ranges::find(ids, -1) != ids.end()) return {};  // never set
    for (const int32_t id : ids) {
      if (id < 0 || id >= groups()) {
        return bad(*entry, "names group " + std::to_string(id) + " of " + std::to_string(groups()));
      }
    }
    if (!groups_are_whole(ids)) {
      out_->order_.resize(ids.size());
      std::iota(out_->order_.begin(), out_->order_.end(), 0);
      std::ranges::stable_sort(out_->order_, {}, [&](int32_t column) { return ids[static_cast<size_t>(column)]; });
      std::ranges::stable_sort(ids);
      if (!groups_are_whole(ids)) {
        return unsupported(where_ + ": tensor " + quote(entry->name) + " does not give every group " +
                           std::to_string(out_->group_) + " columns");
      }
    }
    out_->group_ids_.clear();
    for (int64_t first = 0; first < k; first += out_->group_) {
      out_->group_ids_.push_back(ids[static_cast<size_t>(first)]);
    }
    return {};
  }

  // Whether each run of group_ columns shares a group.
  bool groups_are_whole(const std::vector<int32_t>& ids) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto group = static_cast<size_t>(out_->group_);
      if (ids[i] != ids[i / group * group]) return false;
    }
    return true;
  }

  void set_type() {
    WeightType& type = out_->type_;
    const bool narrow = scheme().bits <= 4;
    type.codes = scheme().layout == Layout::kFp8 ? CodeKind::kFp8 : narrow ? CodeKind::kInt4 : CodeKind::kInt8;
    type.zeros = out_->zeros_ != nullptr;
    type.token_scale = scheme().token_scale;
    type.ordered = !out_->order_.empty();
    // The largest power of two times 32 in a group: kernels find a column's group by a shift.
    const int64_t group = out_->group_;
    type.group = group == out_->k_ ? kWholeRow : static_cast<int32_t>(group & -group);
    if (!type.zeros && type.codes == CodeKind::kInt4) out_->code_offset_ = 8 - (1 << (scheme().bits - 1));
  }

  const QuantizedParts& parts_;
  const std::string& where_;
  std::shared_ptr<QuantizedLinear> out_;
};

Result<std::shared_ptr<const QuantizedLinear>> QuantizedLinear::create(const QuantScheme& scheme,
                                                                       const QuantizedParts& parts,
                                                                       const std::string& where) {
  return QuantizedLinearBuilder(scheme, parts, where).build();
}

}  // namespace quire
