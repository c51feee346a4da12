// Inputs of linears that read them in an order or with scales of their own (activations.h).
#include <algorithm>
#include <cstring>

#include "device/cpu/cpu_device.h"

namespace quire::cpu {

bool CpuDevice::same_input(const LinearWeight& a, const LinearWeight& b) const {
  if (sizes_.repacks(a.type) != sizes_.repacks(b.type)) return false;
  if (!sizes_.repacks(a.type)) return true;
  if (a.type.token_scale != b.type.token_scale || (a.order == nullptr) != (b.order == nullptr)) return false;
  return a.order == b.order || std::memcmp(a.order, b.order, static_cast<size_t>(a.k) * sizeof *a.order) == 0;
}

const CpuLinearInput& CpuDevice::input_of(const LinearInput& in, const LinearWeight& weight, int64_t index) {
  const CpuLinearInput& given = on_cpu(in);
  if (!sizes_.repacks(weight.type)) return given;
  CpuLinearInput& out = given.repacked(index);
  pool_.parallel_for(given.rows(), 4, [&](int64_t begin, int64_t end, int worker) {
    float* ordered = scratch(worker, out.k_padded());
    for (int64_t row = begin; row < end; ++row) {
      const float* x = given.values(row);
      if (weight.order == nullptr) {
        std::copy_n(x, weight.k, ordered);
      } else {
        for (int64_t i = 0; i < weight.k; ++i) ordered[i] = x[weight.order[i]];
      }
      if (weight.type.token_scale) {
        out.store_token(kernels_, row, ordered);
      } else {
        out.store(kernels_, row, ordered, 0, weight.k);
      }
    }
  });
  return out;
}

}  // namespace quire::cpu
