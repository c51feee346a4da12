// The AVX2 and AVX-VNNI kernels that are compiled apart, for avx2_kernels.cc to put into tables.
#pragma once

#include "device/cpu/kernels.h"
#include "device/cpu/tile_format.h"

namespace quire::cpu {

LinearFn avx2_linear_i4(const TileFormat& format, ActKind kind);
LinearFn avx2_linear_i5(const TileFormat& format, ActKind kind);
LinearFn avx2_linear_i6(const TileFormat& format, ActKind kind);
LinearFn avx2_linear_i8(const TileFormat& format, ActKind kind);
LinearFn avx2_linear_e4m3(const TileFormat& format, ActKind kind);
LinearFn avx2_linear_float(const TileFormat& format, ActKind kind);

LinearFn avxvnni_linear_i8(const TileFormat& format);  // int8 activations

void avx2_attend_bf16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
void avx2_attend_f16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
void avx2_attend_i8(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
void avx2_attend_f32(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);

}  // namespace quire::cpu
