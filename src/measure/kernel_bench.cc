#include "measure/kernel_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "capacity/model_setup.h"
#include "device/memory.h"
#include "formats/checkpoint.h"
#include "model/weights.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsPerFigure = 0.4;
// Passes over all matrices of a shape are timed as one: a cache must not hold what the next matrix reads.
constexpr int64_t kUncachedBytes = int64_t{96} << 20;

using Shape = std::tuple<WeightType, int64_t, int64_t>;

// Matrices of the layers and the head, by shape. Norms and biases have one row; embeddings are looked up, not multiplied,
// but a tied one is also the head.
std::map<Shape, std::vector<const TensorRef*>> matrices_by_shape(const Checkpoint& checkpoint) {
  std::map<Shape, std::vector<const TensorRef*>> shapes;
  for (const TensorRef& tensor : checkpoint.tensors()) {
    if (tensor.rows() < 2) continue;
    shapes[{tensor.type(), tensor.rows(), tensor.columns()}].push_back(&tensor);
  }
  return shapes;
}

struct Matrices {
  std::vector<Buffer> memory;
  std::vector<LinearWeight> weights;
  int64_t packed_bytes = 0;  // of one
};

Result<Matrices> pack(Device& device, std::span<const TensorRef* const> tensors, const Shape& shape) {
  const auto [type, n, k] = shape;
  Matrices matrices;
  matrices.packed_bytes = device.sizes().packed_bytes(type, n, k);
  const auto wanted = static_cast<size_t>(kUncachedBytes / std::max<int64_t>(matrices.packed_bytes, 1) + 1);
  for (size_t i = 0; i < std::max(wanted, tensors.size()); ++i) {
    const TensorRef& tensor = *tensors[i % tensors.size()];
    QUIRE_ASSIGN_OR_RETURN(Buffer memory, Buffer::allocate(matrices.packed_bytes, "a matrix"));
    matrices.weights.push_back(device.pack(linear_source(tensor), memory.data()));
    matrices.memory.push_back(std::move(memory));
    if (static_cast<int64_t>(i + 1) * matrices.packed_bytes > 4 * kUncachedBytes) break;
  }
  return matrices;
}

// Median over passes of the seconds that one matrix takes.
double time_products(Device& device, const Matrices& matrices, const LinearInput& in, float* out) {
  std::vector<double> passes;
  const auto begin = Clock::now();
  double total = 0;
  while (total < kSecondsPerFigure || passes.size() < 3) {
    const auto start = Clock::now();
    for (const LinearWeight& weight : matrices.weights) device.linear(in, weight, out);
    passes.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    total = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::nth_element(passes.begin(), passes.begin() + static_cast<std::ptrdiff_t>(passes.size() / 2), passes.end());
  return passes[passes.size() / 2] / static_cast<double>(matrices.weights.size());
}

// out [rows][n] = x [rows][k] times one matrix.
Status multiply(Device& device, const LinearWeight& weight, std::span<const float> x, std::span<float> out) {
  const std::array<WeightType, 1> readers = {weight.type};
  const auto rows = static_cast<int64_t>(x.size()) / weight.k;
  const ActivationShape shape = {.max_rows = rows, .k = weight.k, .readers = readers};
  QUIRE_ASSIGN_OR_RETURN(const Buffer memory, Buffer::allocate(device.sizes().activation_bytes(shape), "activations"));
  const auto in = device.make_linear_input(shape, memory.data());
  in->set_rows(rows);
  device.norm(x.data(), rows, weight.k, Norm{}, *in);
  device.linear(*in, weight, out.data());
  return {};
}

// KernelSpeed::error of one matrix, with the first rows of `x`.
Result<double> rounding_error(Device& device, Device& exact, const LinearWeight& weight, std::span<const float> x) {
  const int64_t rows = std::min<int64_t>(4, static_cast<int64_t>(x.size()) / weight.k);
  const auto in = x.first(static_cast<size_t>(rows * weight.k));
  std::vector<float> got(static_cast<size_t>(rows * weight.n));
  std::vector<float> want(got.size());
  QUIRE_RETURN_IF_ERROR(multiply(device, weight, in, got));
  QUIRE_RETURN_IF_ERROR(multiply(exact, weight, in, want));
  double change = 0;
  double size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    change += std::pow(double{got[i]} - want[i], 2);
    size += std::pow(double{want[i]}, 2);
  }
  return size > 0 ? std::sqrt(change / size) : 0;
}

}  // namespace

Status bench_kernels(const ModelOptions& options, std::span<const int64_t> rows,
                     const std::function<void(const KernelSpeed&)>& on_speed) {
  QUIRE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(options.model_path));
  QUIRE_ASSIGN_OR_RETURN(const auto device, make_device(options));
  ModelOptions exact_options = options;
  exact_options.compute = ComputeMode::kF32;
  QUIRE_ASSIGN_OR_RETURN(const auto exact, make_device(exact_options));
  const int64_t most = rows.back();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const auto& [shape, tensors] : matrices_by_shape(*checkpoint)) {
    const auto [type, n, k] = shape;
    QUIRE_ASSIGN_OR_RETURN(const Matrices matrices, pack(*device, tensors, shape));
    const std::array<WeightType, 1> readers = {type};
    const ActivationShape input = {.max_rows = most, .k = k, .readers = readers};
    QUIRE_ASSIGN_OR_RETURN(const Buffer memory,
                           Buffer::allocate(device->sizes().activation_bytes(input), "activations"));
    const auto activations = device->make_linear_input(input, memory.data());
    std::vector<float> x(static_cast<size_t>(most * k));
    for (float& value : x) value = normal(random);
    QUIRE_ASSIGN_OR_RETURN(const double error, rounding_error(*device, *exact, matrices.weights[0], x));
    std::vector<float> out(static_cast<size_t>(most * n));
    double one_row = 0;
    for (const int64_t count : rows) {
      activations->set_rows(count);
      device->norm(x.data(), count, k, Norm{}, *activations);
      KernelSpeed speed{.dtype = weight_type_name(type),
                        .n = n,
                        .k = k,
                        .matrices = static_cast<int64_t>(tensors.size()),
                        .rows = count,
                        .error = error};
      speed.seconds = time_products(*device, matrices, *activations, out.data());
      if (one_row == 0) one_row = speed.seconds;
      speed.weight_gbps = static_cast<double>(matrices.packed_bytes) / speed.seconds / 1e9;
      speed.gops = 2.0 * static_cast<double>(n * k * count) / speed.seconds / 1e9;
      speed.cost_over_one = speed.seconds / one_row;
      on_speed(speed);
    }
  }
  return {};
}

}  // namespace quire
