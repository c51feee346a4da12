// How the CPU device stores a weight matrix, so that one layout serves one row (GEMV) and many (GEMM).
//
// A matrix W [n, k] is cut into strips of 16 rows. Inside a strip the 16 rows are interleaved: one 64-byte line holds
// 16 rows x 4 K of 8-bit values (one dword a row), 16 rows x 8 K of nibbles, or 16 rows x 2 K of bf16, so that a
// vector instruction advances 16 output features at once and no horizontal sum is ever taken. K is padded to a
// multiple of 64, n to a multiple of 16; padding has scale 0.
//
// A strip is read from its first byte to its last: hardware follows one stream of lines, and scales in a region of their own
// would be a second one (on Zen 4 that cost a third of the memory's speed). So they precede the quants they belong to, in blocks
// of the fewest K whose scales fill whole lines: 64 K of Q4_0 and Q4_K, the row where one scale serves it. The last block may
// have fewer K; its scales take as much room. Before each 256 K of the K-quants stands a line with d, and dmin where there are
// mins, of the 16 rows as f16. A block holds:
//   scales  one per (group, row): f16, bf16 or f32, or an integer multiple of d for the K-quants
//   mins    likewise, where the format has them; or int8 zero points, less the format's `zero`
//   quants  of integer formats per 32 K, in the order that the quads are unpacked in:
//             kI5: 1 line; bit p of a byte is the fifth bit of quad p
//             kI6: 1 line; two more bits of quads 0 .. 3, quad 0 first
//             kI4, kI5, kI6: 4 lines; line p holds K quad p in its low nibbles and quad p + 4 in its high ones
//             kI6: 1 line; two more bits of quads 4 .. 7
//             kI8, kE4M3: 8 lines, one a quad
//           kBF16: per 2 K a line of 16 pairs; kF16, kF32: per K 16 values
//
// Integer values are unsigned. w = scale * (q - zero), or scale * q + min; of kE4M3 scale * e4m3(q). Values are those of the file: packing
// loses nothing (cpu/pack_test.cc decodes every type both ways).
#pragma once

#include <cstdint>
#include <string_view>

namespace quire {
struct WeightType;
}

namespace quire::cpu {

inline constexpr std::string_view kTileLayout = "cpu strips 3";  // count on with every change of what is described here
inline constexpr int64_t kStripRows = 16;
inline constexpr int64_t kTileK = 64;     // K is padded to this
inline constexpr int64_t kActGroup = 32;  // K per activation scale
inline constexpr int64_t kSuperK = 256;   // K per d / dmin of the K-quants
inline constexpr int64_t kLineBytes = 64;

enum class Quants : uint8_t { kI4, kI5, kI6, kI8, kE4M3, kBF16, kF16, kF32 };
enum class Scale : uint8_t { kNone, kF16, kBF16, kF32, kSubU8, kSubI8 };  // kSub*: integer times the super scale d

struct TileFormat {
  Quants quants = Quants::kF32;
  Scale scale = Scale::kNone;
  bool mins = false;
  uint8_t zero = 0;    // subtracted from q; 0 where there are mins
  int32_t group = 0;   // K per scale: 16, or 32 times a power of two
  bool zeros = false;  // a zero point a (group, row) besides

  bool scaled() const { return scale != Scale::kNone; }
  bool integer() const { return scaled() && quants != Quants::kE4M3; }
  bool super() const { return scale == Scale::kSubU8 || scale == Scale::kSubI8; }
};

TileFormat tile_format(const WeightType& type);
std::string_view quants_name(Quants quants);

// Where the parts of one strip of `k` columns lie, in bytes.
struct StripLayout {
  int64_t k_padded = 0;
  int64_t block_k = 0;       // columns of a block
  int64_t block_groups = 0;  // scales of a row in it
  // Inside a block; scales are at 0.
  int64_t mins = 0;
  int64_t quants = 0;
  int64_t group_bytes = 0;  // the quants of 32 K
  int64_t block_bytes = 0;  // from block to block, the lines of d between them aside
  int64_t super_bytes = 0;  // from d to d; 0: there are none
  int64_t bytes = 0;        // from strip to strip

  int64_t block_at(int64_t block) const {
    const int64_t lines_of_d = super_bytes == 0 ? 0 : block * block_k / kSuperK + 1;
    return block * block_bytes + lines_of_d * kLineBytes;
  }
  // Quants of column k, a multiple of 32.
  int64_t quants_at(int64_t k) const { return block_at(k / block_k) + quants + k % block_k / kActGroup * group_bytes; }
};

StripLayout strip_layout(const TileFormat& format, int64_t k);

inline int64_t strip_count(int64_t n) { return (n + kStripRows - 1) / kStripRows; }

}  // namespace quire::cpu
