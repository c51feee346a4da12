// What a model would take if its weights were stored in another way: from its headers alone, for every common scheme, and
// how many sequences of a length would then fit into this machine's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "capacity/opened_model.h"

namespace quire {

struct WhatIf {
  struct Kv {
    std::string name;  // "bf16 KV"
    int64_t bytes_per_token = 0;
    int64_t bytes_per_sequence = 0;  // of `context` tokens, in whole pages
  };
  struct Weights {
    std::string name;                // "INT4, groups of 128"
    std::string tables;              // what the embedding and the output matrix are then: "F16", "Q4_0, Q6_K"
    double bits = 0;                 // a weight of the layers' matrices, with its share of scales and zero points
    int64_t layer_bytes = 0;         // of the layers' matrices, on disk
    int64_t file_bytes = 0;          // of all tensors
    int64_t packed_bytes = 0;        // in memory; the embedding stays in the mapped file, unless it is the head as well
    int64_t other_bytes = 0;         // workspace, tokenizer, the program
    bool fits = false;               // without any sequence
    std::vector<int64_t> sequences;  // that fit beside it, for each of `kv`
  };

  int64_t layer_weights = 0;  // values of the layers' matrices
  int64_t table_weights = 0;  // of embedding and output matrix; one matrix where they are tied
  int64_t context = 0;        // tokens of a sequence
  int64_t available_bytes = 0;
  std::vector<Kv> kv;
  std::vector<Weights> weights;  // the first: as stored
};

// For sequences of the options' context; 0: 4,096, or the model's context if that is less.
Result<WhatIf> what_if(const ModelHeaders& model);

}  // namespace quire
