// Attention as independent items: one (sequence, KV head, run of query tokens) each.
//
// Keys are taken in splits of 512 at absolute multiples; a split's partial result depends on the row and the split
// alone, and partials are merged from left to right. Whether one worker walks all splits of an item or several share
// them, the result is therefore the same bits.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace quire::cpu {
namespace {

constexpr int64_t kMaxSplitRows = 64;  // rows of a step whose partials may be kept apart

int64_t padded_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

// Floats of one state of up to 32 rows.
int64_t state_floats(int64_t rows, int64_t dim) { return rows * (dim + 2); }

AttentionState state_at(float* memory, int64_t rows) {
  return {.max = memory, .sum = memory + rows, .out = memory + 2 * rows};
}

}  // namespace

struct CpuDevice::AttentionItem {
  const SequenceSpan* span = nullptr;
  int64_t kv_head = 0;
  int64_t first_token = 0;  // of the span's rows
  int64_t tokens = 0;
  int64_t first_split = 0;  // splits that some row of the item sees
  int64_t last_split = 0;   // exclusive
};

int64_t CpuDevice::kv_head_bytes(int64_t head_dim) const {
  return 2 * kPageTokens * padded_dim(head_dim) * (f32_ ? 4 : 2);
}

int64_t CpuDevice::attention_scratch_floats(const HeadShape& shape, int64_t context) const {
  const int64_t splits = (context + kKeySplit - 1) / kKeySplit;
  return kMaxSplitRows * splits * (padded_dim(shape.head_dim) + 2);
}

void CpuDevice::attend_item(const AttentionArgs& args, const AttentionItem& item, int64_t first_split,
                            int64_t last_split, const AttentionState& part, const AttentionState& total) const {
  const HeadShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  AttentionRows in{};
  in.rows = static_cast<int32_t>(item.tokens * group);
  const int64_t stride = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
  for (int64_t t = 0; t < item.tokens; ++t) {
    for (int64_t h = 0; h < group; ++h) {
      const int64_t row = item.span->first_row + item.first_token + t;
      in.q[t * group + h] = args.qkv + row * stride + (item.kv_head * group + h) * shape.head_dim;
      in.position[t * group + h] = item.span->first_position + item.first_token + t;
    }
  }
  in.head_dim = static_cast<int32_t>(shape.head_dim);
  in.head_dim_padded = static_cast<int32_t>(padded_dim(shape.head_dim));
  in.window = args.window;
  in.scale = args.scale;
  in.softcap = args.softcap;
  in.kv_base = reinterpret_cast<const uint8_t*>(args.kv.base + item.kv_head * args.kv.head_stride);
  in.page_stride = args.kv.page_stride;
  in.page_table = item.span->page_table;
  in.kv_tokens = item.span->first_position + item.span->rows;
  const auto attend = f32_ ? kernels_.attend_f32 : kernels_.attend_bf16;
  const int64_t seen_last = in.position[in.rows - 1] + 1;
  for (int64_t split = first_split; split < last_split; ++split) {
    attend(in, split * kKeySplit, std::min((split + 1) * kKeySplit, seen_last), part);
    if (total.out != nullptr) kernels_.merge(in.rows, in.head_dim_padded, part, total);
  }
}

void CpuDevice::finish_item(const AttentionArgs& args, const AttentionItem& item, const AttentionState& total) const {
  const HeadShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t dim = padded_dim(shape.head_dim);
  float sinks[kMaxAttentionRows];
  for (int64_t i = 0; args.sinks != nullptr && i < item.tokens * group; ++i)
    sinks[i] = args.sinks[item.kv_head * group + i % group];
  kernels_.finish(static_cast<int32_t>(item.tokens * group), static_cast<int32_t>(dim),
                  args.sinks == nullptr ? nullptr : sinks, total);
  for (int64_t t = 0; t < item.tokens; ++t) {
    const int64_t row = item.span->first_row + item.first_token + t;
    for (int64_t h = 0; h < group; ++h) {
      std::copy_n(total.out + (t * group + h) * dim, shape.head_dim,
                  args.out + (row * shape.heads + item.kv_head * group + h) * shape.head_dim);
    }
  }
}

void CpuDevice::attend_whole(const AttentionArgs& args, std::span<const AttentionItem> items) {
  const int64_t floats = state_floats(kMaxAttentionRows, padded_dim(args.shape.head_dim));
  pool_.parallel_for(static_cast<int64_t>(items.size()), 1, [&](int64_t begin, int64_t end, int worker) {
    float* memory = scratch(worker, 2 * floats);
    for (int64_t i = begin; i < end; ++i) {
      const AttentionItem& item = items[static_cast<size_t>(i)];
      const int64_t rows = item.tokens * args.shape.heads / args.shape.kv_heads;
      const AttentionState total = state_at(memory, rows);
      std::fill_n(memory, state_floats(rows, padded_dim(args.shape.head_dim)), 0.0f);
      std::fill_n(total.max, rows, -1e30f);
      attend_item(args, item, item.first_split, item.last_split, state_at(memory + floats, rows), total);
      finish_item(args, item, total);
    }
  });
}

void CpuDevice::attend_split(const AttentionArgs& args, std::span<const AttentionItem> items, int64_t parts) {
  struct Part {
    const AttentionItem* item;
    int64_t split;
    AttentionState state;
  };
  const int64_t dim = padded_dim(args.shape.head_dim);
  std::vector<Part> work;
  work.reserve(static_cast<size_t>(parts));
  float* memory = args.scratch;
  for (const AttentionItem& item : items) {
    const int64_t rows = item.tokens * args.shape.heads / args.shape.kv_heads;
    for (int64_t split = item.first_split; split < item.last_split; ++split, memory += state_floats(rows, dim)) {
      work.push_back({&item, split, state_at(memory, rows)});
    }
  }
  pool_.parallel_for(parts, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const Part& part = work[static_cast<size_t>(i)];
      attend_item(args, *part.item, part.split, part.split + 1, part.state, AttentionState{});
    }
  });
  for (size_t i = 0; i < work.size();) {
    const AttentionItem& item = *work[i].item;
    const auto rows = static_cast<int32_t>(item.tokens * args.shape.heads / args.shape.kv_heads);
    float* total_memory = scratch(0, state_floats(rows, dim));
    const AttentionState total = state_at(total_memory, rows);
    std::fill_n(total_memory, state_floats(rows, dim), 0.0f);
    std::fill_n(total.max, rows, -1e30f);
    for (; i < work.size() && work[i].item == &item; ++i)
      kernels_.merge(rows, static_cast<int32_t>(dim), work[i].state, total);
    finish_item(args, item, total);
  }
}

void CpuDevice::attention(const AttentionArgs& args) {
  const int64_t group = args.shape.heads / args.shape.kv_heads;
  QUIRE_CHECK(group <= kMaxAttentionRows && args.shape.head_dim <= kMaxHeadDim);
  const int64_t tokens_per_item = kMaxAttentionRows / group;
  std::vector<AttentionItem> items;
  int64_t parts = 0;
  int64_t rows = 0;
  for (const SequenceSpan& span : args.spans) {
    rows += span.rows;
    for (int64_t first = 0; first < span.rows; first += tokens_per_item) {
      AttentionItem item{.span = &span, .first_token = first, .tokens = std::min(tokens_per_item, span.rows - first)};
      const int64_t oldest = span.first_position + first - args.window + 1;
      item.first_split = args.window > 0 && oldest > 0 ? oldest / kKeySplit : 0;
      item.last_split = (span.first_position + first + item.tokens - 1) / kKeySplit + 1;
      for (item.kv_head = 0; item.kv_head < args.shape.kv_heads; ++item.kv_head) {
        items.push_back(item);
        parts += item.last_split - item.first_split;
      }
    }
  }
  // Too few items to keep every worker busy: share the splits out as well.
  const auto count = static_cast<int64_t>(items.size());
  if (pool_.size() > 1 && count < 2 * pool_.size() && parts > count && rows * args.shape.heads <= kMaxSplitRows) {
    attend_split(args, items, parts);
  } else {
    attend_whole(args, items);
  }
  const int64_t n = args.shape.heads * args.shape.head_dim;
  norm(args.out, rows, n, Norm{}, *args.out_activations);
}

}  // namespace quire::cpu
