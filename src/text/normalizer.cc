#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

// The only canonical composition that is younger than Hugging Face's tables: U+11938 = U+11935 U+11930.
constexpr char32_t kYoungComposite = 0x11938;
constexpr utf8proc_int32_t kYoungSecondPart = 0x11930;

// Everything below is its own NFC and composes with nothing before it.
constexpr unsigned char kFirstUnstableLead = 0xCC;  // of U+0300

bool is_trivially_nfc(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < kFirstUnstableLead; });
}

// Latin letters, and ideographs, kana and Hangul syllables without what lies between.
bool composes_with_nothing_before(utf8proc_int32_t c) {
  return c < 0x300 || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3);
}

bool stopped(WorkMeter* meter) { return meter != nullptr && meter->spent(); }

int combining_class(utf8proc_int32_t c) {
  return char_bits(static_cast<char32_t>(c)) & kReorders ? utf8proc_get_property(c)->combining_class : 0;
}

// Code points that Hugging Face takes for starters that compose with nothing, because they are younger than its tables.
bool begins_segment(utf8proc_int32_t c) {
  return c == kYoungSecondPart || (utf8proc_get_property(c)->combining_class != 0 && combining_class(c) == 0);
}

void decompose(char32_t c, std::vector<utf8proc_int32_t>* out) {
  utf8proc_int32_t parts[16];  // the longest canonical decomposition has four
  int boundary = 0;
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 16, UTF8PROC_DECOMPOSE, &boundary);
  if (c != kYoungComposite && n > 0 && n <= 16) {
    out->insert(out->end(), parts, parts + n);
  } else {
    out->push_back(static_cast<utf8proc_int32_t>(c));
  }
}

// The least that is worth sorting by counting.
constexpr size_t kLongRun = 256;

using CodePoints = std::span<utf8proc_int32_t>;

// A stable sort by class and not utf8proc's exchanges: theirs are quadratic in the length of a run, which is the text's
// author to choose. Long runs are counted, so that the work can be stopped.
void sort_marks(CodePoints run, WorkMeter* meter) {
  if (run.size() < kLongRun) {
    std::stable_sort(run.begin(), run.end(), [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    return;
  }
  std::array<std::vector<utf8proc_int32_t>, 256> by_class;
  for (const utf8proc_int32_t c : run) {
    if (stopped(meter)) return;
    by_class[static_cast<size_t>(combining_class(c))].push_back(c);
  }
  auto out = run.begin();
  for (const auto& marks : by_class) out = std::copy(marks.begin(), marks.end(), out);
}

// Sorts each run of combining marks by class.
void reorder_marks(CodePoints code_points, WorkMeter* meter) {
  size_t begin = 0;  // of the run that ends at i
  for (size_t i = 0; i <= code_points.size() && !stopped(meter); ++i) {
    if (i < code_points.size() && combining_class(code_points[i]) != 0) continue;
    if (i > begin + 1) sort_marks(code_points.subspan(begin, i - begin), meter);
    begin = i + 1;
  }
}

// The end of what is composed by itself from `begin`: the next segment, and where much has gathered the next character
// that composes with nothing before it.
size_t segment_end(CodePoints code_points, size_t begin, WorkMeter* meter) {
  size_t end = begin + 1;
  for (; end < code_points.size() && !stopped(meter); ++end) {
    const utf8proc_int32_t c = code_points[end];
    if (begins_segment(c) || (end - begin >= kLongRun && composes_with_nothing_before(c))) break;
  }
  return end;
}

void compose(utf8proc_int32_t* first, utf8proc_int32_t* last, std::string* out) {
  const auto n =
      utf8proc_normalize_utf32(first, last - first, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(static_cast<char32_t>(first[i]), out);
}

}  // namespace

std::string to_nfc(std::string_view text, WorkMeter* meter) {
  if (is_trivially_nfc(text)) return std::string(text);
  std::vector<utf8proc_int32_t> code_points;
  code_points.reserve(text.size());
  for (size_t i = 0; i < text.size(); i += utf8_length(text[i])) {
    if (stopped(meter)) return {};
    decompose(utf8_decode(text.data() + i), &code_points);
  }
  reorder_marks(code_points, meter);
  std::string out;
  out.reserve(text.size());
  for (size_t begin = 0; begin < code_points.size();) {
    const size_t end = segment_end(code_points, begin, meter);
    if (meter != nullptr && meter->stopped()) return {};
    compose(code_points.data() + begin, code_points.data() + end, &out);
    begin = end;
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to, WorkMeter* meter) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos || stopped(meter)) return out;
    out += to;
    at = found + from.size();
  }
}

Result<Normalizer> Normalizer::create(std::vector<NormalizerStep> steps) {
  for (const NormalizerStep& step : steps) {
    if (step.kind == NormalizerStep::Kind::kReplace && step.pattern.empty()) {
      return unsupported("the tokenizer's normalizer replaces an empty pattern");
    }
  }
  return Normalizer(std::move(steps));
}

std::string_view Normalizer::apply(std::string_view text, std::string* storage, WorkMeter* meter) const {
  return apply_steps(text, true, storage, meter);
}

std::string_view Normalizer::apply_to_rest(std::string_view text, std::string* storage, WorkMeter* meter) const {
  return apply_steps(text, false, storage, meter);
}

std::string_view Normalizer::apply_steps(std::string_view text, bool prepends, std::string* storage,
                                         WorkMeter* meter) const {
  std::string_view current = text;
  for (const NormalizerStep& step : steps_) {
    switch (step.kind) {
      case NormalizerStep::Kind::kNfc:
        if (is_trivially_nfc(current)) continue;
        *storage = to_nfc(current, meter);
        break;
      case NormalizerStep::Kind::kPrepend:
        if (!prepends || current.empty()) continue;
        *storage = step.content + std::string(current);
        break;
      case NormalizerStep::Kind::kReplace:
        if (current.find(step.pattern) == std::string_view::npos) continue;
        *storage = replace_all(current, step.pattern, step.content, meter);
        break;
    }
    current = *storage;
  }
  return current;
}

}  // namespace quire
