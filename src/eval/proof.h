// What quantization cost a model, as it is kept in the model's file (CheckpointNotes::proof).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "eval/evaluate.h"
#include "eval/windows.h"

namespace quire {

struct Proof {
  std::string text;         // what it was judged on, and
  std::string text_sha256;  // its hash
  int64_t window = 0;
  int64_t tokens = 0;   // scored
  double kl = 0;        // mean KL(original || model), nats
  double kl_upper = 0;  // where it lies below with 97.5 % confidence
  double perplexity = 0;
  double perplexity_of_original = 0;
};

// Of the first candidate of an evaluation with a reference.
Proof proof_of(const Evaluation& evaluation, const EvalText& text, std::string text_name, std::string text_sha256);

std::string proof_text(const Proof& proof);  // JSON
Result<Proof> parse_proof(std::string_view text, const std::string& where);

}  // namespace quire
