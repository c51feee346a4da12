// One forward step: rows of any number of sequences at any positions, as plain data. Prefill, a chunk of it, decode,
// verification of drafts and a pipeline stage are all this one call.
#pragma once

#include <cstdint>
#include <vector>

namespace quire {

// Consecutive rows of one sequence. Its keys before first_position are already in the pages.
struct SequenceRows {
  int64_t rows = 0;
  int64_t first_position = 0;
  // One per KV group: the page of tokens [16 i, 16 i + 16). Pages that fell out of a group's window may be any number.
  std::vector<const int32_t*> page_tables;
};

struct StepInput {
  std::vector<SequenceRows> sequences;  // rows follow in this order
  std::vector<int32_t> tokens;          // one a row; unused when hidden_in is given

  int64_t first_layer = 0;
  int64_t last_layer = -1;           // exclusive; -1: to the end
  const float* hidden_in = nullptr;  // [rows][hidden], the residual stream before first_layer
  float* hidden_out = nullptr;       // [rows][hidden], after last_layer; null: not wanted
};

}  // namespace quire
