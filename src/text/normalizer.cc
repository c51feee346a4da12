#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

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

// Sorts each run of combining marks by class. A stable sort and not utf8proc's exchanges: theirs are quadratic in the
// length of a run, which is the text's author to choose.
void reorder_marks(std::vector<utf8proc_int32_t>* code_points) {
  const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
  for (auto it = code_points->begin(); it != code_points->end();) {
    const auto first = std::find_if(it, code_points->end(), is_mark);
    it = std::find_if_not(first, code_points->end(), is_mark);
    std::stable_sort(first, it, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
  }
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
    if (meter != nullptr && meter->spent()) return {};
    decompose(utf8_decode(text.data() + i), &code_points);
  }
  reorder_marks(&code_points);
  std::string out;
  out.reserve(text.size());
  auto* const end = code_points.data() + code_points.size();
  for (auto* first = code_points.data(); first != end;) {
    if (meter != nullptr && meter->spent()) return {};
    auto* const last = std::find_if(first + 1, end, begins_segment);
    compose(first, last, &out);
    first = last;
  }
  return out;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
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
        *storage = replace_all(current, step.pattern, step.content);
        break;
    }
    current = *storage;
  }
  return current;
}

}  // namespace quire
