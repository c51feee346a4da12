// What an engine says about a request. After any number of kDelta and one kChoiceFinished per choice comes exactly one
// terminal event, kFinished or kFailed, whatever happens; after it nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

struct TokenLogprob {
  struct Candidate {
    int32_t id = 0;
    float logprob = 0;
  };
  int32_t id = 0;
  float logprob = 0;
  int32_t rank = 0;            // 0: the most likely
  std::vector<Candidate> top;  // best first
};

struct RequestTimings {
  double queued_ms = 0;   // submit to first scheduled
  double prefill_ms = 0;  // first scheduled to first token
  double ttft_ms = 0;     // submit to first token
  double decode_ms = 0;   // first token to last
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;     // of the prompt, found in the prefix cache
  int64_t generated_tokens = 0;  // of all choices
  int64_t preemptions = 0;

  int64_t prefilled_tokens() const { return prompt_tokens - cached_tokens; }
  // The first token comes out of the prefill.
  int64_t decoded_tokens() const { return generated_tokens > 0 ? generated_tokens - 1 : 0; }
  double prefill_per_second() const { return per_second(prefilled_tokens(), prefill_ms); }
  double decode_per_second() const { return per_second(decoded_tokens(), decode_ms); }

 private:
  // Speeds have no meaning for no tokens or no time.
  static double per_second(int64_t tokens, double ms) {
    return tokens > 0 && ms > 0 ? 1000.0 * static_cast<double>(tokens) / ms : 0;
  }
};

struct Event {
  enum class Kind { kDelta, kChoiceFinished, kFinished, kFailed };

  Kind kind = Kind::kDelta;
  int32_t choice = 0;
  std::string text;                           // kDelta: valid UTF-8, may be empty when only ids or logprobs move on
  std::vector<int32_t> ids;                   // kDelta: the tokens generated since the last one
  bool ends_generation = false;               // kDelta: the last of ids is an EOS or stop token, not part of the text
  std::vector<TokenLogprob> logprobs;         // kDelta: one per id, where asked for
  std::vector<TokenLogprob> prompt_logprobs;  // first kDelta of choice 0: one per prompt token but the first
  std::string finish_reason;                  // kChoiceFinished: "stop" or "length"
  std::string stop_text;                      // kChoiceFinished: the stop string that matched, if one did
  RequestTimings timings;                     // kFinished, kFailed
  Status error;                               // kFailed: kCancelled, kResourceExhausted (waited too long), ...
};

}  // namespace quire
