#include "tensor/dtype.h"

#include <array>

#include "tensor/quant/float_types.h"
#include "tensor/quant/iq4_nl.h"
#include "tensor/quant/iq4_xs.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/q2_k.h"
#include "tensor/quant/q3_k.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_1.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q5_1.h"
#include "tensor/quant/q5_k.h"
#include "tensor/quant/q6_k.h"
#include "tensor/quant/q8_0.h"

namespace quire {
namespace {

// In the order of the enum.
constexpr std::array<DTypeInfo, kDTypeCount> kDTypes = {{
    {DType::kF32, "F32", 0, 1, 4, decode_f32, encode_f32},
    {DType::kF16, "F16", 1, 1, 2, decode_f16, encode_f16},
    {DType::kBF16, "BF16", 30, 1, 2, decode_bf16, encode_bf16},
    {DType::kQ4_0, "Q4_0", 2, 32, sizeof(BlockQ4_0), decode_q4_0, encode_q4_0},
    {DType::kQ4_1, "Q4_1", 3, 32, sizeof(BlockQ4_1), decode_q4_1, nullptr},
    {DType::kQ5_0, "Q5_0", 6, 32, sizeof(BlockQ5_0), decode_q5_0, nullptr},
    {DType::kQ5_1, "Q5_1", 7, 32, sizeof(BlockQ5_1), decode_q5_1, nullptr},
    {DType::kQ8_0, "Q8_0", 8, 32, sizeof(BlockQ8_0), decode_q8_0, encode_q8_0},
    {DType::kQ2_K, "Q2_K", 10, 256, sizeof(BlockQ2_K), decode_q2_k, nullptr},
    {DType::kQ3_K, "Q3_K", 11, 256, sizeof(BlockQ3_K), decode_q3_k, nullptr},
    {DType::kQ4_K, "Q4_K", 12, 256, sizeof(BlockQ4_K), decode_q4_k, nullptr},
    {DType::kQ5_K, "Q5_K", 13, 256, sizeof(BlockQ5_K), decode_q5_k, nullptr},
    {DType::kQ6_K, "Q6_K", 14, 256, sizeof(BlockQ6_K), decode_q6_k, encode_q6_k},
    {DType::kIQ4_NL, "IQ4_NL", 20, 32, sizeof(BlockIQ4_NL), decode_iq4_nl, nullptr},
    {DType::kIQ4_XS, "IQ4_XS", 23, 256, sizeof(BlockIQ4_XS), decode_iq4_xs, nullptr},
    {DType::kMXFP4, "MXFP4", 39, 32, sizeof(BlockMXFP4), decode_mxfp4, nullptr},
}};

// Ids of ggml.h. Gaps are types that were withdrawn.
constexpr std::array<const char*, 43> kGgmlTypeNames = {
    "F32",   "F16",    "Q4_0",  "Q4_1",  nullptr, nullptr,   "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",   "I64",     "F64",    "IQ1_M",   "BF16",  nullptr,  nullptr,
    nullptr, "TQ1_0",  "TQ2_0", nullptr, nullptr, nullptr,   "MXFP4",  "NVFP4",   "Q1_0",  "Q2_0"};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

std::span<const DTypeInfo> all_dtypes() { return kDTypes; }

const DTypeInfo* dtype_from_ggml(uint32_t ggml_type) {
  for (const DTypeInfo& info : kDTypes) {
    if (static_cast<uint32_t>(info.ggml_type) == ggml_type) return &info;
  }
  return nullptr;
}

const char* ggml_type_name(uint32_t ggml_type) {
  return ggml_type < kGgmlTypeNames.size() ? kGgmlTypeNames[ggml_type] : nullptr;
}

}  // namespace quire
