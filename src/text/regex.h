// Regular expressions of pre-tokenizers, over PCRE2 with its JIT compiler.
//
// A Regex is immutable and usable from any thread; a Search is one thread's state of walking one text. Matching is
// bounded, for each match and for all matches of a text together: a pattern that backtracks without end is an error, not a
// hang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace quire {

class Regex {
 public:
  // `pattern` in the syntax that tokenizer.json uses; see text/regex_syntax.h.
  static Result<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  // Walks the matches in one text after another, in order, without overlap. An empty match right behind another match
  // is passed over.
  class Search {
   public:
    explicit Search(const Regex& regex);  // which must outlive the search
    Search(Search&&) noexcept;
    ~Search();

    void start(std::string_view text);  // valid UTF-8, read until the next start

    // False: no further match. The range is in bytes.
    Result<bool> next(size_t* begin, size_t* end);

   private:
    struct State;
    int match();  // from from_ on; what pcre2_match() returns

    const Regex* regex_;
    std::string_view text_;
    size_t from_ = 0;
    size_t last_end_ = std::string_view::npos;
    uint64_t steps_left_ = 0;  // for matches of this text that take long
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  Regex(std::unique_ptr<Code> code, std::string pattern);

  std::unique_ptr<Code> code_;
  std::string pattern_;  // as given, for messages
};

}  // namespace quire
