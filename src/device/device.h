// What model code runs on: memory and block-level operations. A device may fuse, tile and thread an operation as it
// likes, as long as every row's result depends on that row (and its sequence's keys) alone.
//
// Shapes: activations are row-major [rows][features] f32 where a pointer is given; `LinearInput` hold them in the
// formats a device's linears read. Pointers stay the caller's. Thread: one operation at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "device/device_sizes.h"
#include "tensor/weight_type.h"

namespace quire {

// A matrix [n, k] in the device's own layout.
struct LinearWeight {
  WeightType type;
  int64_t n = 0;
  int64_t k = 0;
  const std::byte* data = nullptr;
  const int32_t* order = nullptr;  // [k]: the input that each column of the matrix multiplies; null: its own
};

// A matrix as a checkpoint stores it: row(i) is the first byte of row i, or `codes` reads rows of codes and scales.
struct LinearSource {
  WeightType type;
  int64_t n = 0;
  int64_t k = 0;
  std::function<const std::byte*(int64_t)> row = {};
  CodeReader codes = {};
  const int32_t* order = nullptr;  // the caller's, for as long as the weight is used
};

// The input of linears, in the formats that the weights given at creation read. Layout is the device's.
class LinearInput {
 public:
  virtual ~LinearInput() = default;
  virtual void set_rows(int64_t rows) = 0;  // of the current step, at most max_rows
  // The values of a row as they came, where make_linear_input was asked to keep them.
  virtual const float* values(int64_t row) const = 0;
};

struct Norm {
  const float* weight = nullptr;  // null: no norm, the values as they are
  float eps = 0;
};

// One sequence's rows of a step, for one KV group.
struct SequenceSpan {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_position = 0;           // of first_row; the others follow
  const int32_t* page_table = nullptr;  // page of tokens [16 i, 16 i + 16)
};

// Where a layer's K and V lie: page p of head h starts at base + p * page_stride + h * head_stride.
struct KvLayer {
  std::byte* base = nullptr;
  int64_t page_stride = 0;
  int64_t head_stride = 0;
};

// A part of a page of one or more heads, which lie kv_head_bytes apart.
struct SlotCopy {
  const std::byte* from = nullptr;  // the first head in the page that is read, and in
  std::byte* to = nullptr;          // the page that is written, another one
  int64_t heads = 0;                // of one or more layers
  int64_t head_dim = 0;
  int64_t slots = 0;  // the first of the page, at most kPageTokens
};

// cos and sin per row, [rows][dim / 2]; dim 0: this layer rotates nothing.
struct RopeRows {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t dim = 0;
};

// What qkv_project saw, from which K factors are chosen (model/k_factors.h). A value's magnitude is that of its rope pair,
// (x_i^2 + x_j^2)^(1/2), which no position changes; its own where nothing is rotated. Rows enter in their order, so that
// the sums are the same bits for any number of threads.
struct QkvStatistics {
  float* k_largest_square = nullptr;   // [kv_heads][head_dim], the largest so far, the value that stood there included
  double* q_sum_of_squares = nullptr;  // [heads][head_dim], added to what stood there
};

struct QkvArgs {
  const LinearInput* in = nullptr;
  LinearWeight q, k, v;
  const float* q_bias = nullptr;  // null: none; [heads * head_dim]
  const float* k_bias = nullptr;
  const float* v_bias = nullptr;
  // What K is divided by before it is stored, and Q multiplied by, so that scores stay: [kv_heads][head_dim], the same for
  // both values of a rope pair. Null: 1. Evens out channels that one int8 scale per head would serve badly.
  const float* k_factors = nullptr;
  const QkvStatistics* statistics = nullptr;  // of Q and K before the factors; null: not wanted
  Norm q_norm, k_norm;                        // per head, before rope
  HeadShape shape;
  RopeRows rope;
  std::span<const SequenceSpan> spans;  // cover the rows; K and V go to their pages
  KvLayer kv;
  float* q_out = nullptr;  // [rows][heads * head_dim]
};

struct AttentionArgs {
  const float* q = nullptr;  // [rows][heads * head_dim], as qkv_project left it
  HeadShape shape;
  std::span<const SequenceSpan> spans;
  KvLayer kv;
  float scale = 1;
  float softcap = 0;             // 0: none
  int64_t window = 0;            // 0: none
  const float* sinks = nullptr;  // [heads]; null: none
  float* scratch = nullptr;      // DeviceSizes::attention_scratch_floats()
  LinearInput* out = nullptr;    // [rows][heads * head_dim]
};

enum class Activation { kSilu, kGeluTanh };

struct GateUpArgs {
  const LinearInput* in = nullptr;
  LinearWeight gate, up;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  Activation activation = Activation::kSilu;
  LinearInput* out = nullptr;
};

// The end of a half layer: x += post_norm(in * weight + bias); then, unless `next` is null, next = next_norm(x).
struct ProjectArgs {
  const LinearInput* in = nullptr;
  LinearWeight weight;
  const float* bias = nullptr;
  Norm post_norm;
  float* partial = nullptr;  // [rows][n], scratch; used with post_norm only
  float* x = nullptr;        // [rows][n]
  int64_t rows = 0;
  Norm next_norm;
  LinearInput* next = nullptr;
};

struct HeadArgs {
  const float* x = nullptr;       // [*][hidden]
  std::span<const int32_t> rows;  // of x
  Norm norm;
  LinearWeight weight;
  float softcap = 0;
  LinearInput* scratch = nullptr;  // at least rows.size() rows
  float* logits = nullptr;         // [rows.size()][weight.n]
};

// c[i][j] += alpha * (sum over k of a(i, k) * b(j, k)), in f32; a(i, k) lies at data[i * row_stride + k * k_stride], and one
// of the strides is 1. Sums are the same whatever the number of threads.
struct MatMulArgs {
  struct Operand {
    const float* data = nullptr;
    int64_t row_stride = 0;
    int64_t k_stride = 1;
  };
  Operand a, b;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  float alpha = 1;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool lower = false;  // only j <= i is wanted; what lies above may be changed
};

// Threads that a device computes with.
struct ThreadUse {
  int total = 0;
  int active = 0;        // now: fewer while other programs take cores
  int64_t retreats = 0;  // times that it took fewer
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceSizes& sizes() const = 0;
  virtual ThreadUse threads() const = 0;         // any thread
  virtual int64_t kv_bytes_read() const = 0;     // of pages, by attention since the start, counted tile by tile
  virtual int64_t scalar_fallbacks() const = 0;  // linears whose format has no kernel here

  // Packs in parallel into `memory`, 64-byte aligned, packed_bytes() long.
  virtual LinearWeight pack(const LinearSource& source, std::byte* memory) = 0;

  // Times products with `weight`, a large matrix of the model, to choose what depends on the machine alone and changes
  // no result.
  virtual void tune(const LinearWeight& weight) = 0;

  // In `memory`, activation_bytes() long.
  virtual std::unique_ptr<LinearInput> make_linear_input(const ActivationShape& shape, std::byte* memory) = 0;

  // The other slots of the page that is written keep their bits.
  virtual void copy_slots(const SlotCopy& what) = 0;

  virtual void norm(const float* x, int64_t rows, int64_t n, const Norm& norm, LinearInput& out) = 0;
  virtual void qkv_project(const QkvArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  virtual void project(const ProjectArgs& args) = 0;
  virtual void gate_up(const GateUpArgs& args) = 0;
  // out = in * weight, [rows][n].
  virtual void linear(const LinearInput& in, const LinearWeight& weight, float* out) = 0;
  virtual void head(const HeadArgs& args) = 0;
  // out[i] = log(sum(exp(logits row i))), logits [rows][n]: a logit minus this is a log-probability.
  virtual void log_sum_exp(const float* logits, int64_t rows, int64_t n, float* out) = 0;
  virtual void matmul(const MatMulArgs& args) = 0;
  // Runs body(begin, end) over [0, count) on the device's threads, for host work between operations.
  virtual void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) = 0;
};

// How attention goes over keys and heads. kFlash is the one to use; the others are what it is measured against, with the
// same dot products: all heads of a KV head one by one, and the whole matrix of scores in memory.
enum class AttentionMethod { kFlash, kPerHead, kFullScores };

// What pages hold. kF16: values beyond its range saturate at +-65504. kI8: codes with an f32 scale per token and head, for
// K and for V.
enum class KvType { kBF16, kF16, kI8, kF32 };

struct CpuDeviceOptions {
  enum class Isa { kAuto, kScalar, kAvx2, kAvx512 };
  Isa isa = Isa::kAuto;
  int threads = 1;
  bool adapt_threads = true;  // use fewer while other programs take cores
  bool f32 = false;           // f32 activations
  std::optional<KvType> kv;   // absent: kF32 with f32 activations, else kBF16
  // Rounds the scales of int8 activations, one for 32 values, up to powers of two: faster products, larger errors.
  bool power_of_two_scales = false;
  AttentionMethod attention = AttentionMethod::kFlash;
};

// Fails when the CPU lacks the instruction set asked for, or the instruction set or KV type the attention method.
Result<std::unique_ptr<Device>> make_cpu_device(const CpuDeviceOptions& options);
// The sizes of such a device, which is not made. Fails likewise.
Result<std::unique_ptr<DeviceSizes>> make_cpu_device_sizes(const CpuDeviceOptions& options);

}  // namespace quire
