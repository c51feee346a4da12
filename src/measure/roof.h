// What this machine can do at most: the rates that kernels and models are measured against.
//
// Machines that are shared change from minute to minute, so a rate is worth something only beside the measurement that it
// is compared with. Thread: one caller at a time, who is worker 0 of the pool.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/thread_pool.h"
#include "device/memory.h"

namespace quire {

// Operations a second, 10^9; a multiply and an add are two. 0: this CPU lacks the instruction.
struct ComputeRoof {
  double fp32_gflops = 0;
  double bf16_gflops = 0;  // vdpbf16ps
  double int8_gops = 0;    // vpdpbusd, or vpmaddubsw and its adds where that is the best there is
};

// The best of several short runs on all threads of the pool at once.
ComputeRoof measure_compute_roof(ThreadPool& pool);

// Reads memory that no cache holds.
class BandwidthProbe {
 public:
  static Result<BandwidthProbe> create(ThreadPool& pool);
  // GB/s (10^9) of the best of a few passes: some tens of milliseconds.
  double measure();

 private:
  BandwidthProbe(ThreadPool& pool, Buffer memory) : pool_(&pool), memory_(std::move(memory)) {}

  ThreadPool* pool_;
  Buffer memory_;
};

}  // namespace quire
