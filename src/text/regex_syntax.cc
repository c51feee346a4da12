#include "text/regex_syntax.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "unicode/unicode.h"

namespace quire {
namespace {

using Predicate = std::function<bool(uint16_t bits)>;

constexpr std::array<std::string_view, 30> kCategoryNames = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

// Neighbouring code points with equal properties. Surrogates, which no text holds, are in none.
struct Run {
  char32_t first = 0;
  char32_t last = 0;
  uint16_t bits = 0;
};

std::vector<Run> make_runs() {
  std::vector<Run> runs;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    const uint16_t bits = char_bits(c);
    if (!runs.empty() && runs.back().bits == bits && runs.back().last + 1 == c) {
      runs.back().last = c;
    } else {
      runs.push_back({c, c, bits});
    }
  }
  return runs;
}

// Made once: it takes milliseconds, and patterns have many escapes.
const std::vector<Run>& all_runs() {
  static const std::vector<Run> runs = make_runs();
  return runs;
}

// The code points whose properties satisfy `contains` as members of a character class, in PCRE2's spelling, without
// the brackets.
std::string class_members(const std::vector<Run>& runs, const Predicate& contains) {
  std::string out;
  const auto put = [&out](char32_t c) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\x{%x}", static_cast<unsigned>(c));
    out += buffer;
  };
  for (auto run = runs.begin(); run != runs.end();) {
    if (!contains(run->bits)) {
      ++run;
      continue;
    }
    const char32_t first = run->first;
    char32_t last = run->last;
    for (++run; run != runs.end() && run->first == last + 1 && contains(run->bits); ++run) last = run->last;
    put(first);
    if (last > first) {
      out += '-';
      put(last);
    }
  }
  return out;
}

// One \s, \w, \p{..} ... : what it matches, and how to write that where PCRE2's own escape nearly does.
struct CharSet {
  Predicate contains;
  std::string native;  // empty: list every member
  bool negated = false;
};

std::optional<Predicate> category_predicate(std::string_view name) {
  uint32_t mask = 0;
  for (size_t i = 0; i < kCategoryNames.size(); ++i) {
    const bool matches = name.size() == 1 ? kCategoryNames[i][0] == name[0] : kCategoryNames[i] == name;
    if (matches) mask |= 1u << i;
  }
  if (mask == 0) return std::nullopt;
  return [mask](uint16_t bits) { return (mask >> (bits & kCategoryMask) & 1) != 0; };
}

bool is_regex_word(uint16_t bits) { return bits & kRegexWord; }

// Within a class, Oniguruma's \w leaves out the superscripts and fractions of Latin-1 that it matches elsewhere.
bool is_regex_word_in_class(uint16_t bits) {
  return is_regex_word(bits) && static_cast<Category>(bits & kCategoryMask) != Category::kNo;
}

std::optional<CharSet> shorthand(char letter, bool in_class) {
  switch (letter) {
    case 's':
    case 'S':
      return CharSet{[](uint16_t bits) { return bits & kSpace; }, "", letter == 'S'};
    case 'w':
    case 'W':
      return CharSet{in_class ? is_regex_word_in_class : is_regex_word, "", letter == 'W'};
    case 'd':
    case 'D':
      return CharSet{*category_predicate("Nd"), "\\p{Nd}", letter == 'D'};
    default:
      return std::nullopt;
  }
}

// Escapes that PCRE2 reads differently are written out, a thousand times their length; PCRE2 itself takes less than this.
constexpr size_t kMaxTranslatedBytes = size_t{1} << 20;

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    while (at_ < pattern_.size()) {
      if (out_.size() > kMaxTranslatedBytes) return refuse("too many or too large character sets");
      const char c = pattern_[at_];
      if (c == '\\') {
        QUIRE_RETURN_IF_ERROR(escape());
      } else if (in_class_) {
        QUIRE_RETURN_IF_ERROR(class_character(c));
      } else if (c == '[') {
        open_class();
      } else if (c == '(') {
        QUIRE_RETURN_IF_ERROR(open_group());
      } else if (c == '{') {
        QUIRE_RETURN_IF_ERROR(interval());
      } else {
        copy(1);
      }
    }
    if (in_class_) return refuse("an unclosed character class");
    return std::move(out_);
  }

 private:
  Status refuse(const std::string& what) const {
    return unsupported("the pre-tokenizer's regular expression uses " + what + " at byte " + std::to_string(at_) +
                       ", which quire does not support: " + std::string(pattern_));
  }

  void copy(size_t n) {
    out_ += pattern_.substr(at_, n);
    at_ += n;
  }

  void open_class() {
    in_class_ = true;
    copy(1);
    if (at_ < pattern_.size() && pattern_[at_] == '^') copy(1);
    if (at_ < pattern_.size() && pattern_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
  }

  Status class_character(char c) {
    if (c == '[') return refuse("a class within a class");
    if (pattern_.substr(at_, 2) == "&&") return refuse("the class operator &&");
    if (c == ']') in_class_ = false;
    copy(1);
    return {};
  }

  Status open_group() {
    if (pattern_.substr(at_, 2) == "(*") return refuse("a verb or callout");
    if (pattern_.substr(at_, 2) != "(?") {
      copy(1);
      return {};
    }
    size_t end = at_ + 2;
    while (end < pattern_.size() && std::string_view("imx-").find(pattern_[end]) != std::string_view::npos) ++end;
    const bool has_options = end > at_ + 2;
    if (has_options && end < pattern_.size() && pattern_[end] == ')' && at_ != 0) {
      return refuse("an option switch that does not begin the pattern");
    }
    if (pattern_.substr(at_, 3) == "(?~") return refuse("an absence operator");
    out_ += "(?";
    for (at_ += 2; at_ < end; ++at_) {
      if (pattern_[at_] == 'x') return refuse("extended syntax");
      out_ += pattern_[at_] == 'm' ? 's' : pattern_[at_];
    }
    return {};
  }

  // {n}, {n,}, {,m}, {n,m}; any other brace is literal in both.
  Status interval() {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) {
      copy(1);
      return {};
    }
    const std::string_view inner = pattern_.substr(at_ + 1, close - at_ - 1);
    if (inner.empty() || inner.find_first_not_of("0123456789,") != std::string_view::npos) {
      copy(1);
      return {};
    }
    if (close + 1 < pattern_.size() && (pattern_[close + 1] == '+' || pattern_[close + 1] == '?')) {
      return refuse("a quantifier after an interval");
    }
    if (inner[0] == ',') {
      out_ += "{0" + std::string(inner) + "}";
      at_ = close + 1;
    } else {
      copy(close + 1 - at_);
    }
    return {};
  }

  Status escape() {
    if (at_ + 1 == pattern_.size()) return refuse("a trailing backslash");
    const char letter = pattern_[at_ + 1];
    if (const std::optional<CharSet> set = shorthand(letter, in_class_)) {
      at_ += 2;
      put_set(*set);
      return {};
    }
    switch (letter) {
      case 'p':
      case 'P':
        return property();
      case 'h':
        return replace_escape("0-9a-fA-F");
      case 'v':
        return replace_escape("\\x0b");
      case 'u':
        return unicode_escape();
      case 'x':
        return hex_escape();
      case 'b':
        if (!in_class_) return word_boundary();
        break;
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        break;
      case 'A':
      case 'z':
      case 'Z':
        if (in_class_) return refuse(std::string("\\") + letter + " in a class");
        break;
      default:
        if ((letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z')) {
          return refuse(std::string("the escape \\") + letter);
        }
    }
    copy(2);
    return {};
  }

  // Writes members in place of a two-character escape.
  Status replace_escape(std::string_view text) {
    at_ += 2;
    if (!in_class_) out_ += '[';
    out_ += text;
    if (!in_class_) out_ += ']';
    return {};
  }

  // PCRE2's escape, and the members that its older Unicode tables do not know.
  std::string positive_members(const CharSet& set) {
    if (set.native.empty()) return class_members(all_runs(), set.contains);
    return set.native +
           class_members(all_runs(), [&set](uint16_t bits) { return (bits & kRecent) && set.contains(bits); });
  }

  void put_set(const CharSet& set) {
    if (!in_class_) {
      out_ += (set.negated ? "[^" : "[") + positive_members(set) + "]";
    } else if (!set.negated) {
      out_ += positive_members(set);
    } else {
      out_ += class_members(all_runs(), [&set](uint16_t bits) { return !set.contains(bits); });
    }
  }

  Status property() {
    const size_t close = pattern_.find('}', at_);
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || close == std::string_view::npos) {
      return refuse("a property without braces");
    }
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    bool negated = pattern_[at_ + 1] == 'P';
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    if (const std::optional<Predicate> contains = category_predicate(name)) {
      put_set({*contains, "\\p{" + std::string(name) + "}", negated});
    } else if (!name.empty() && name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") ==
                                    std::string_view::npos) {
      // A script. PCRE2 refuses names it does not know.
      out_ += (negated ? "\\P{sc:" : "\\p{sc:") + std::string(name) + "}";
    } else {
      return refuse("the property '" + std::string(name) + "'");
    }
    at_ = close + 1;
    return {};
  }

  Status unicode_escape() {
    const std::string_view digits = pattern_.substr(at_ + 2, 4);
    if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
      return refuse("\\u without four hexadecimal digits");
    }
    out_ += "\\x{" + std::string(digits) + "}";
    at_ += 6;
    return {};
  }

  // \xHH is a byte for Oniguruma and a code point for PCRE2: the same below 0x80.
  Status hex_escape() {
    if (pattern_.substr(at_ + 2, 1) == "{") {
      const size_t close = pattern_.find('}', at_);
      if (close == std::string_view::npos) return refuse("an unclosed \\x{");
      copy(close + 1 - at_);
      return {};
    }
    if (pattern_.size() < at_ + 4 || pattern_[at_ + 2] >= '8') return refuse("\\x above 7f");
    copy(4);
    return {};
  }

  Status word_boundary() {
    const std::string word = class_members(all_runs(), is_regex_word);
    const auto look = [&](std::string_view kind) {
      out_ += kind;
      out_ += '[';
      out_ += word;
      out_ += "])";
    };
    out_ += "(?:";
    look("(?<=");
    look("(?!");
    out_ += '|';
    look("(?<!");
    look("(?=");
    out_ += ')';
    at_ += 2;
    return {};
  }

  std::string_view pattern_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

Result<std::string> to_pcre2_syntax(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace quire
