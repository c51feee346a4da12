// Generated ids to final text: detokenizes, finds stop strings, and holds back what is not yet certain.
// One per generated choice; the Tokenizer must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engine/stop_matcher.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace quire {

class AnswerText {
 public:
  AnswerText(const Tokenizer& tokenizer, StopTexts stops) : detokenizer_(tokenizer), stops_(std::move(stops)) {}

  // Appends to `released` what `id` makes final. True: a stop string is complete and the answer over. Unless `may_stop`,
  // stop strings are not looked for (yet).
  bool push(int32_t id, std::string& released, bool may_stop = true);
  // The answer ended otherwise: appends what was held back.
  void finish(std::string& released);

  bool stopped() const { return !stops_.matched().empty(); }
  const std::string& stop_string() const { return stops_.matched(); }

 private:
  Detokenizer detokenizer_;
  StopMatcher stops_;
};

}  // namespace quire
