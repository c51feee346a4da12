#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>

#include "text/regex_syntax.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

constexpr size_t kMaxPatternBytes = 1 << 16;
// Steps of matching. Nearly every match takes fewer than the first number; one that takes more is tried again with ever more
// steps, and those come out of what the whole text has. So a pattern that is slow everywhere, but nowhere slow enough to be
// stopped, is an error too.
constexpr uint32_t kFirstSteps = 2'000, kMostSteps = 20'000'000;
constexpr uint64_t kTextSteps = 2 * kMostSteps, kTextStepsPerByte = 200;
constexpr uint32_t kHeapLimitKib = 64 << 10;
constexpr size_t kJitStackBytes = 1 << 20;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  pcre2_code* code;
};

struct Regex::Search::State {
  explicit State(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 << 10, kJitStackBytes, nullptr)) {
    if (context == nullptr) return;
    pcre2_set_heap_limit(context, kHeapLimitKib);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    if (stack != nullptr) pcre2_jit_stack_free(stack);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

Regex::Regex(std::unique_ptr<Code> code, std::string pattern) : code_(std::move(code)), pattern_(std::move(pattern)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) return unsupported("a pre-tokenizer's regular expression exceeds 64 KiB");
  QUIRE_ASSIGN_OR_RETURN(const std::string translated, to_pcre2_syntax(pattern));
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr) return resource_exhausted("no memory for a regular expression");
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, 100);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code == nullptr) {
    return unsupported("the pre-tokenizer's regular expression does not compile (" + error_text(error) +
                       "): " + std::string(pattern));
  }
  // Where there is no JIT (a hardened kernel), the interpreter runs under the same limits.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Regex(std::make_unique<Code>(code), std::string(pattern));
}

Regex::Search::Search(const Regex& regex) : regex_(&regex), state_(std::make_unique<State>(regex.code_->code)) {}
Regex::Search::Search(Search&&) noexcept = default;
Regex::Search::~Search() = default;

void Regex::Search::start(std::string_view text) {
  text_ = text;
  from_ = 0;
  last_end_ = std::string_view::npos;
  steps_left_ = kTextSteps + kTextStepsPerByte * text.size();
}

int Regex::Search::match() {
  for (uint32_t steps = kFirstSteps;; steps = std::min(steps * 16, kMostSteps)) {
    if (steps > kFirstSteps) {
      if (steps_left_ < steps) return PCRE2_ERROR_MATCHLIMIT;
      steps_left_ -= steps;
    }
    pcre2_set_match_limit(state_->context, steps);
    const int rc = pcre2_match(regex_->code_->code, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from_,
                               PCRE2_NO_UTF_CHECK, state_->data, state_->context);
    if (rc != PCRE2_ERROR_MATCHLIMIT || steps == kMostSteps) return rc;
  }
}

Result<bool> Regex::Search::next(size_t* begin, size_t* end) {
  if (state_->data == nullptr || state_->context == nullptr) {
    return resource_exhausted("no memory to match a regular expression");
  }
  while (from_ <= text_.size()) {
    const int rc = match();
    if (rc == PCRE2_ERROR_NOMATCH) {
      from_ = text_.size() + 1;
      return false;
    }
    if (rc < 0) {
      return invalid_argument("the text takes the pre-tokenizer's regular expression past its limits (" +
                              error_text(rc) + "): " + regex_->pattern_);
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state_->data);
    *begin = range[0];
    *end = range[1];
    if (range[0] == range[1] && range[1] == last_end_) {
      from_ += from_ < text_.size() ? utf8_length(text_[from_]) : 1;
      continue;
    }
    from_ = last_end_ = range[1];
    return true;
  }
  return false;
}

}  // namespace quire
