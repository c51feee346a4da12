#include "quantize/inverse_factor.h"

#include <algorithm>
#include <cmath>

namespace quire {
namespace {

constexpr int64_t kLeaf = 64;

// The lower triangle of a part of a matrix.
struct Block {
  float* data;
  int64_t stride;
  int64_t n;

  float* row(int64_t i) const { return data + i * stride; }
};

// a becomes the inverse of its own Cholesky factor.
bool invert_leaf(const Block& a) {
  const auto n = static_cast<size_t>(a.n);
  std::vector<double> l(n * n);
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = j; i < n; ++i) {
      double sum = a.row(static_cast<int64_t>(i))[j];
      for (size_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
      if (i == j) {
        if (!(sum > 0)) return false;
        l[j * n + j] = std::sqrt(sum);
      } else {
        l[i * n + j] = sum / l[j * n + j];
      }
    }
  }
  for (size_t j = 0; j < n; ++j) {
    std::vector<double> x(n);
    for (size_t i = j; i < n; ++i) {
      double sum = i == j ? 1 : 0;
      for (size_t k = j; k < i; ++k) sum -= l[i * n + k] * x[k];
      x[i] = sum / l[i * n + i];
      a.row(static_cast<int64_t>(i))[j] = static_cast<float>(x[i]);
    }
  }
  return true;
}

// The same in halves. With x the inverse of the factor of the first half, the factor's lower left is l21 = a21 * x^T, the
// second half loses l21 * l21^T, and the inverse's lower left is -y * l21 * x, y being the second half's.
class HalvingInverter {
 public:
  explicit HalvingInverter(Device& device) : device_(device) {}

  bool invert(const Block& a) {
    if (a.n <= kLeaf) return invert_leaf(a);
    const int64_t n1 = (a.n / 2 + kLeaf - 1) / kLeaf * kLeaf;
    const int64_t n2 = a.n - n1;
    const Block x = {a.data, a.stride, n1};
    const Block y = {a.row(n1) + n1, a.stride, n2};
    float* corner = a.row(n1);  // [n2][n1]
    if (!invert(x)) return false;
    clear_upper(x);
    std::vector<float> l21(static_cast<size_t>(n2 * n1));
    multiply({corner, a.stride, 1}, {x.data, x.stride, 1}, {n2, n1, n1}, 1, {l21.data(), n1, n2});
    multiply({l21.data(), n1, 1}, {l21.data(), n1, 1}, {n2, n2, n1}, -1, y);
    if (!invert(y)) return false;
    clear_upper(y);
    std::vector<float> product(static_cast<size_t>(n2 * n1));
    multiply({l21.data(), n1, 1}, {x.data, 1, x.stride}, {n2, n1, n1}, 1, {product.data(), n1, n2});
    for (int64_t i = 0; i < n2; ++i) std::fill_n(corner + i * a.stride, n1, 0.0f);
    multiply({y.data, y.stride, 1}, {product.data(), 1, n1}, {n2, n1, n2}, -1, {corner, a.stride, n2});
    return true;
  }

 private:
  struct Shape {
    int64_t m, n, k;
  };
  void multiply(const MatMulArgs::Operand& a, const MatMulArgs::Operand& b, const Shape& shape, float alpha,
                const Block& c) {
    device_.matmul(
        {.a = a, .b = b, .m = shape.m, .n = shape.n, .k = shape.k, .alpha = alpha, .c = c.data, .c_stride = c.stride});
  }
  static void clear_upper(const Block& a) {
    for (int64_t i = 0; i < a.n; ++i) std::fill_n(a.row(i) + i + 1, a.n - i - 1, 0.0f);
  }

  Device& device_;
};

void reverse_both(std::vector<float>& h) { std::reverse(h.begin(), h.end()); }

}  // namespace

bool upper_inverse_factor(Device& device, std::vector<float>& h, int64_t n) {
  // Reversing all elements of a square matrix reverses its rows and its columns.
  reverse_both(h);
  const Block whole = {h.data(), n, n};
  if (!HalvingInverter(device).invert(whole)) return false;
  for (int64_t i = 0; i < n; ++i) std::fill_n(whole.row(i) + i + 1, n - i - 1, 0.0f);
  reverse_both(h);
  return true;
}

}  // namespace quire
