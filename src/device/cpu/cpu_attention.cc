// Attention as independent items: one (sequence, KV head, run of query tokens) each, up to the activations that the next
// product reads.
//
// Keys are taken in splits of 512 at absolute multiples; a split's partial result depends on the row and the split
// alone, and partials are merged from left to right. Whether one worker walks all splits of an item or several share
// them, the result is therefore the same bits.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/kv_page.h"
#include "device/cpu/tile_format.h"

namespace quire::cpu {
namespace {

// Floats of one state of up to 32 rows.
int64_t state_floats(int64_t rows, int64_t dim) { return rows * (dim + 2); }

AttentionState state_at(float* memory, int64_t rows) {
  return {.max = memory, .sum = memory + rows, .out = memory + 2 * rows};
}

void clear_state(const AttentionState& state, int64_t rows, int64_t dim) {
  std::fill_n(state.max, rows, -1e30f);
  std::fill_n(state.sum, rows, 0.0f);
  std::fill_n(state.out, rows * dim, 0.0f);
}

}  // namespace

// A run of query tokens of one sequence and the heads of some KV heads: as few as make the features of the result whole
// groups of activations, so that an item stores its own.
struct CpuDevice::AttentionItem {
  const SequenceSpan* span = nullptr;
  int64_t first_kv_head = 0;
  int64_t kv_heads = 0;
  int64_t first_token = 0;  // of the span's rows
  int64_t tokens = 0;
  int64_t first_split = 0;  // splits that some row of the item sees
  int64_t last_split = 0;   // exclusive

  int64_t splits() const { return last_split - first_split; }
};

// One KV head of an item against one split of its keys.
struct CpuDevice::AttentionPart {
  const AttentionItem* item = nullptr;
  int64_t kv_head = 0;
  int64_t split = 0;
  AttentionState state;
};

void CpuDevice::copy_slots(const SlotCopy& what) {
  const int64_t head_bytes = sizes_.kv_head_bytes(what.head_dim);
  for (int64_t head = 0; head < what.heads; ++head) {
    const int64_t at = head * head_bytes;
    copy_kv_slots(sizes_.kv_type(), what.head_dim, what.slots, what.from + at, what.to + at);
  }
}

namespace {

// Rows of one KV head of an item, ordered as its state is: all heads of a token, then the next token.
AttentionRows rows_of(const AttentionArgs& args, const SequenceSpan& span, int64_t first_token, int64_t tokens,
                      int64_t kv_head) {
  const HeadShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  AttentionRows in{};
  in.rows = static_cast<int32_t>(tokens * group);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < group; ++h) {
      const int64_t row = span.first_row + first_token + t;
      in.q[t * group + h] = args.q + (row * shape.heads + kv_head * group + h) * shape.head_dim;
      in.position[t * group + h] = span.first_position + first_token + t;
    }
  }
  in.head_dim = static_cast<int32_t>(shape.head_dim);
  in.head_dim_padded = static_cast<int32_t>(padded_dim(shape.head_dim));
  in.window = args.window;
  in.scale = args.scale;
  in.softcap = args.softcap;
  in.kv_base = reinterpret_cast<const uint8_t*>(args.kv.base + kv_head * args.kv.head_stride);
  in.page_stride = args.kv.page_stride;
  in.page_table = span.page_table;
  in.kv_tokens = span.first_position + span.rows;
  return in;
}

// The keys of [first, last) that some row sees, in whole tiles.
int64_t tile_keys(const AttentionRows& in, int64_t first, int64_t last) {
  const int64_t oldest = in.window > 0 ? std::max<int64_t>(0, in.position[0] - in.window + 1) : 0;
  const int64_t begin = std::max(first, oldest / kKeyTile * kKeyTile);
  return std::max<int64_t>(0, (last - begin + kKeyTile - 1) / kKeyTile * kKeyTile);
}

}  // namespace

void CpuDevice::attend(const AttentionArgs& args, const AttentionItem& item, int64_t kv_head, int64_t split,
                       const AttentionState& part) {
  const AttentionRows in = rows_of(args, *item.span, item.first_token, item.tokens, kv_head);
  const int64_t first = split * kKeySplit;
  const int64_t last = std::min(first + kKeySplit, in.position[in.rows - 1] + 1);
  const int64_t key_bytes = sizes_.kv_head_bytes(args.shape.head_dim) / kPageTokens;
  if (method_ != AttentionMethod::kPerHead) {
    kv_.attend(in, first, last, part);
    kv_bytes_read_.fetch_add(tile_keys(in, first, last) * key_bytes, std::memory_order_relaxed);
    return;
  }
  for (int32_t r = 0; r < in.rows; ++r) {
    AttentionRows one = in;
    one.rows = 1;
    one.q[0] = in.q[r];
    one.position[0] = in.position[r];
    kv_.attend(one, first, last, {part.max + r, part.sum + r, part.out + int64_t{r} * in.head_dim_padded});
    kv_bytes_read_.fetch_add(tile_keys(one, first, last) * key_bytes, std::memory_order_relaxed);
  }
}

void CpuDevice::attend_all_scores(const AttentionArgs& args, const AttentionItem& item, int64_t kv_head, float* scores,
                                  const AttentionState& total) {
  const AttentionRows in = rows_of(args, *item.span, item.first_token, item.tokens, kv_head);
  const int64_t last = in.position[in.rows - 1] + 1;
  kernels_.attend_full_bf16(in, last, scores, total);
  kv_bytes_read_.fetch_add(tile_keys(in, 0, last) * sizes_.kv_head_bytes(args.shape.head_dim) / kPageTokens,
                           std::memory_order_relaxed);
}

// Normalizes the state of one KV head and puts its heads into `out`, [tokens][kv_heads * group * head_dim].
void CpuDevice::finish_head(const AttentionArgs& args, const AttentionItem& item, int64_t kv_head,
                            const AttentionState& total, float* out) const {
  const HeadShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  const int64_t dim = padded_dim(shape.head_dim);
  float sinks[kMaxAttentionRows];
  for (int64_t i = 0; args.sinks != nullptr && i < item.tokens * group; ++i)
    sinks[i] = args.sinks[kv_head * group + i % group];
  kernels_.finish(static_cast<int32_t>(item.tokens * group), static_cast<int32_t>(dim),
                  args.sinks == nullptr ? nullptr : sinks, total);
  for (int64_t t = 0; t < item.tokens; ++t) {
    for (int64_t h = 0; h < group; ++h) {
      std::copy_n(total.out + (t * group + h) * dim, shape.head_dim,
                  out + ((t * item.kv_heads + kv_head - item.first_kv_head) * group + h) * shape.head_dim);
    }
  }
}

void CpuDevice::store_item(const AttentionArgs& args, const AttentionItem& item, const float* out) const {
  const int64_t head_features = args.shape.heads / args.shape.kv_heads * args.shape.head_dim;
  const int64_t features = item.kv_heads * head_features;
  CpuLinearInput& activations = on_cpu(*args.out);
  for (int64_t t = 0; t < item.tokens; ++t) {
    activations.store(kernels_, item.span->first_row + item.first_token + t, out + t * features,
                      item.first_kv_head * head_features, features);
  }
}

void CpuDevice::attend_whole(const AttentionArgs& args, std::span<const AttentionItem> items) {
  const int64_t dim = padded_dim(args.shape.head_dim);
  const int64_t group = args.shape.heads / args.shape.kv_heads;
  const int64_t floats = state_floats(kMaxAttentionRows, dim);
  pool_.parallel_for(static_cast<int64_t>(items.size()), 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      const AttentionItem& item = items[static_cast<size_t>(i)];
      const int64_t rows = item.tokens * group;
      const bool full = method_ == AttentionMethod::kFullScores;
      const int64_t out_floats = item.kv_heads * kMaxAttentionRows * args.shape.head_dim;
      const int64_t score_floats = full ? rows * (item.last_split * kKeySplit + kKeyTile) : 0;
      float* memory = scratch(worker, 2 * floats + out_floats + score_floats);
      const AttentionState total = state_at(memory, rows);
      const AttentionState part = state_at(memory + floats, rows);
      float* out = memory + 2 * floats;
      for (int64_t head = item.first_kv_head; head < item.first_kv_head + item.kv_heads; ++head) {
        clear_state(total, rows, dim);
        if (full) attend_all_scores(args, item, head, out + out_floats, total);
        for (int64_t split = item.first_split; !full && split < item.last_split; ++split) {
          attend(args, item, head, split, part);
          kernels_.merge(static_cast<int32_t>(rows), static_cast<int32_t>(dim), part, total);
        }
        finish_head(args, item, head, total, out);
      }
      store_item(args, item, out);
    }
  });
}

void CpuDevice::attend_split(const AttentionArgs& args, std::span<const AttentionItem> items, int64_t parts) {
  const int64_t dim = padded_dim(args.shape.head_dim);
  const int64_t group = args.shape.heads / args.shape.kv_heads;
  std::vector<AttentionPart> work;
  work.reserve(static_cast<size_t>(parts));
  float* memory = args.scratch;
  for (const AttentionItem& item : items) {
    const int64_t rows = item.tokens * group;
    for (int64_t head = item.first_kv_head; head < item.first_kv_head + item.kv_heads; ++head) {
      for (int64_t split = item.first_split; split < item.last_split; ++split, memory += state_floats(rows, dim))
        work.push_back({&item, head, split, state_at(memory, rows)});
    }
  }
  pool_.parallel_for(parts, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const AttentionPart& part = work[static_cast<size_t>(i)];
      attend(args, *part.item, part.kv_head, part.split, part.state);
    }
  });
  const AttentionPart* next = work.data();
  for (const AttentionItem& item : items) {
    const int64_t rows = item.tokens * group;
    float* out = scratch(0, state_floats(rows, dim) + item.kv_heads * rows * args.shape.head_dim);
    const AttentionState total = state_at(out + item.kv_heads * rows * args.shape.head_dim, rows);
    for (int64_t head = item.first_kv_head; head < item.first_kv_head + item.kv_heads; ++head) {
      clear_state(total, rows, dim);
      for (int64_t split = 0; split < item.splits(); ++split, ++next)
        kernels_.merge(static_cast<int32_t>(rows), static_cast<int32_t>(dim), next->state, total);
      finish_head(args, item, head, total, out);
    }
    store_item(args, item, out);
  }
}

void CpuDevice::attention(const AttentionArgs& args) {
  const HeadShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  QUIRE_CHECK(group <= kMaxAttentionRows && shape.head_dim <= kMaxHeadDim);
  const int64_t tokens_per_item = kMaxAttentionRows / group;
  int64_t heads_per_item = 1;
  while (heads_per_item * group * shape.head_dim % kActGroup != 0 && heads_per_item < shape.kv_heads)
    heads_per_item *= 2;
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
      for (int64_t head = 0; head < shape.kv_heads; head += heads_per_item) {
        item.first_kv_head = head;
        item.kv_heads = std::min(heads_per_item, shape.kv_heads - head);
        items.push_back(item);
        parts += item.kv_heads * item.splits();
      }
    }
  }
  // Too few items to keep every worker busy: share the splits out as well.
  const auto count = static_cast<int64_t>(items.size());
  const bool few = pool_.size() > 1 && count < 2 * pool_.size() && parts > count;
  if (few && rows * shape.heads <= kMaxSplitRows && method_ != AttentionMethod::kFullScores) {
    attend_split(args, items, parts);
  } else {
    attend_whole(args, items);
  }
}

}  // namespace quire::cpu
