#include "measure/roof.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRuns = 5;
constexpr int kChains = 12;  // independent accumulators: more than latency times throughput of any of these
constexpr int64_t kSteps = 1'000'000;
constexpr int64_t kProbeBytes = int64_t{256} << 20;
constexpr int kProbePasses = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Loops of kChains independent instructions on registers 0 to 11 of width R ("ymm", "zmm"), written out so that no
// compiler puts anything between them. Registers 12 and 13 are the operands; all start as 0.
#define QUIRE_EACH_CHAIN(line)                                                                                   \
  line("0") line("1") line("2") line("3") line("4") line("5") line("6") line("7") line("8") line("9") line("10") \
      line("11")
#define QUIRE_ROOF_LOOP(clear, line)                                                                               \
  int64_t steps = kSteps;                                                                                          \
  asm volatile(QUIRE_EACH_CHAIN(clear) clear("12") clear("13")                                                     \
                   clear("14") "1:\n\t" QUIRE_EACH_CHAIN(line) "dec %0\n\tjnz 1b\n\t"                              \
               : "+r"(steps)                                                                                       \
               :                                                                                                   \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
                 "xmm12", "xmm13", "xmm14", "cc")
#define QUIRE_CLEAR(i) "vpxor %%ymm" i ", %%ymm" i ", %%ymm" i "\n\t"
#define QUIRE_INT8_ZMM(i) "vpdpbusd %%zmm13, %%zmm12, %%zmm" i "\n\t"
#define QUIRE_BF16_ZMM(i) "vdpbf16ps %%zmm13, %%zmm12, %%zmm" i "\n\t"
#define QUIRE_FP32_ZMM(i) "vfmadd231ps %%zmm13, %%zmm12, %%zmm" i "\n\t"
#define QUIRE_FP32_YMM(i) "vfmadd231ps %%ymm13, %%ymm12, %%ymm" i "\n\t"
#define QUIRE_INT8_YMM(i)                    \
  "vpmaddubsw %%ymm13, %%ymm12, %%ymm14\n\t" \
  "vpmaddwd %%ymm13, %%ymm14, %%ymm14\n\t"   \
  "vpaddd %%ymm14, %%ymm" i ", %%ymm" i "\n\t"

void int8_avx512() { QUIRE_ROOF_LOOP(QUIRE_CLEAR, QUIRE_INT8_ZMM); }
void bf16_avx512() { QUIRE_ROOF_LOOP(QUIRE_CLEAR, QUIRE_BF16_ZMM); }
void fp32_avx512() { QUIRE_ROOF_LOOP(QUIRE_CLEAR, QUIRE_FP32_ZMM); }
void int8_avx2() { QUIRE_ROOF_LOOP(QUIRE_CLEAR, QUIRE_INT8_YMM); }
void fp32_avx2() { QUIRE_ROOF_LOOP(QUIRE_CLEAR, QUIRE_FP32_YMM); }

// `operations`: of one instruction.
double giga_per_second(ThreadPool& pool, void (*run)(), int operations) {
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = Clock::now();
    pool.run([&](int) { run(); });
    best = std::max(best, static_cast<double>(kSteps) * kChains * operations * pool.size() / seconds_since(start));
  }
  return best / 1e9;
}

// 256-bit loads: the widest that is not slower on some of today's CPUs.
__attribute__((target("avx2"))) int64_t read_memory(const std::byte* memory, int64_t bytes) {
  __m256i sum[4] = {};
  for (int64_t at = 0; at < bytes; at += 128) {
    for (int i = 0; i < 4; ++i) {
      sum[i] =
          _mm256_xor_si256(sum[i], _mm256_load_si256(reinterpret_cast<const __m256i*>(memory + at + int64_t{32} * i)));
    }
  }
  const __m256i all = _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
  return _mm256_extract_epi64(all, 0);
}

int64_t read_memory_plainly(const std::byte* memory, int64_t bytes) {
  int64_t sum = 0;
  for (int64_t at = 0; at < bytes; at += 8) sum ^= *reinterpret_cast<const int64_t*>(memory + at);
  return sum;
}

}  // namespace

ComputeRoof measure_compute_roof(ThreadPool& pool) {
  __builtin_cpu_init();
  ComputeRoof roof;
  if (__builtin_cpu_supports("avx512f")) {
    roof.fp32_gflops = giga_per_second(pool, fp32_avx512, 32);
  } else if (__builtin_cpu_supports("fma")) {
    roof.fp32_gflops = giga_per_second(pool, fp32_avx2, 16);
  }
  if (__builtin_cpu_supports("avx512bf16")) roof.bf16_gflops = giga_per_second(pool, bf16_avx512, 64);
  if (__builtin_cpu_supports("avx512vnni")) {
    roof.int8_gops = giga_per_second(pool, int8_avx512, 128);
  } else if (__builtin_cpu_supports("avx2")) {
    roof.int8_gops = giga_per_second(pool, int8_avx2, 64);
  }
  return roof;
}

Result<BandwidthProbe> BandwidthProbe::create(ThreadPool& pool) {
  QUIRE_ASSIGN_OR_RETURN(Buffer memory, Buffer::allocate(kProbeBytes, "the bandwidth probe"));
  BandwidthProbe probe(pool, std::move(memory));
  // Untouched memory is one page of zeros, which a cache holds.
  pool.run([&](int worker) {
    const int64_t share = kProbeBytes / pool.size() / 4096 * 4096;
    std::fill_n(probe.memory_.data() + worker * share, share, std::byte{1});
  });
  return probe;
}

double BandwidthProbe::measure() {
  const int64_t share = kProbeBytes / pool_->size() / 4096 * 4096;
  const auto read = __builtin_cpu_supports("avx2") ? read_memory : read_memory_plainly;
  std::vector<int64_t> sums(static_cast<size_t>(pool_->size()));
  double best = 0;
  for (int pass = 0; pass < kProbePasses; ++pass) {
    const auto start = Clock::now();
    pool_->run([&](int worker) { sums[static_cast<size_t>(worker)] = read(memory_.data() + worker * share, share); });
    best = std::max(best, static_cast<double>(share * pool_->size()) / seconds_since(start));
  }
  return best / 1e9;
}

}  // namespace quire
