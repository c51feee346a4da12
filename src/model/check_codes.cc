#include "model/check_codes.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace quire {
namespace {

// No early end: this way the loop is vectorised.
bool has_nan(const std::vector<uint8_t>& e4m3) {
  uint8_t any = 0;
  for (const uint8_t code : e4m3) any |= static_cast<uint8_t>((code & 0x7f) == 0x7f);
  return any != 0;
}

}  // namespace

Status check_codes(const TensorRef& tensor, Device& device, const std::string& where) {
  if (tensor.quantized == nullptr || tensor.type().codes != CodeKind::kFp8) return {};
  const int64_t n = tensor.rows(), k = tensor.columns();
  const int64_t groups = code_groups(tensor.type(), k);
  std::atomic<int64_t> bad_row = n;
  device.parallel(n, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> codes(static_cast<size_t>(k));
    std::vector<float> scales(static_cast<size_t>(groups));
    const CodeRows row = {
        .codes = codes.data(), .code_stride = k, .scales = scales.data(), .zeros = nullptr, .groups = groups};
    for (int64_t r = begin; r < end; ++r) {
      tensor.quantized->read(r, 1, row);
      if (has_nan(codes)) bad_row = std::min(bad_row.load(), r);
    }
  });
  if (bad_row == n) return {};
  return corrupt(where + ": tensor " + tensor.name + " holds a NaN in row " + std::to_string(bad_row.load()) +
                 ": the quantization failed or the file is damaged");
}

}  // namespace quire
