// The AVX-512 kernels that are compiled apart, for avx512_kernels.cc to put into one table.
#pragma once

#include "device/cpu/kernels.h"
#include "device/cpu/tile_format.h"

namespace quire::cpu {

LinearFn avx512_linear_i4(const TileFormat& format, ActKind kind);
LinearFn avx512_linear_i5(const TileFormat& format, ActKind kind);
LinearFn avx512_linear_i6(const TileFormat& format, ActKind kind);
LinearFn avx512_linear_i8(const TileFormat& format, ActKind kind);
LinearFn avx512_linear_e4m3(const TileFormat& format, ActKind kind);
LinearFn avx512_linear_float(const TileFormat& format, ActKind kind);

void avx512_attend_bf16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
void avx512_attend_full_bf16(const AttentionRows& in, int64_t last, float* scores, const AttentionState& state);
void avx512_attend_f16(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
void avx512_attend_i8(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);
void avx512_attend_f32(const AttentionRows& rows, int64_t first, int64_t last, const AttentionState& state);

}  // namespace quire::cpu
