#include "formats/module_pattern.h"

#include <algorithm>
#include <cctype>

#include "base/messages.h"

namespace quire {
namespace {

constexpr size_t kMaxStates = 4096;
constexpr int kMaxDepth = 32;
constexpr int kMaxRepeat = 64;

std::bitset<256> class_of(char c, bool* known) {
  std::bitset<256> chars;
  *known = true;
  if (c == 'd' || c == 'w') {
    for (int i = '0'; i <= '9'; ++i) chars.set(static_cast<size_t>(i));
  }
  if (c == 'w') {
    for (int i = 'a'; i <= 'z'; ++i) chars.set(static_cast<size_t>(i)).set(static_cast<size_t>(i - 'a' + 'A'));
    chars.set('_');
  }
  if (chars.none()) {
    *known = std::isalnum(static_cast<unsigned char>(c)) == 0;
    chars.set(static_cast<unsigned char>(c));
  }
  return chars;
}

}  // namespace

// A Thompson construction from the back: each part is built before the state that follows it, which is known.
class ModulePatternParser {
 public:
  explicit ModulePatternParser(std::string_view text) : text_(text) {}

  Result<ModulePattern> parse() {
    const int accept = add({.kind = Kind::kAccept});
    QUIRE_ASSIGN_OR_RETURN(const Part part, alternatives(0));
    if (at_ < text_.size()) return bad();
    out_.start_ = build(part, accept);
    if (out_.states_.size() >= kMaxStates) return unsupported("the pattern " + quote(text_) + " is too long");
    return std::move(out_);
  }

 private:
  using State = ModulePattern::State;
  using Kind = ModulePattern::Kind;

  // A syntax tree, because repeating a part means building it again.
  struct Part {
    enum class Op : uint8_t { kState, kSequence, kChoice, kRepeat } op = Op::kSequence;
    State state = {};
    std::vector<Part> parts = {};
    int least = 0;
    int most = -1;  // -1: any number
  };

  Status bad() const {
    return unsupported("the pattern " + quote(text_) + " uses what quire does not know, at character " +
                       std::to_string(at_ + 1));
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<Part> alternatives(int depth) {
    if (depth > kMaxDepth) return bad();
    Part choice{.op = Part::Op::kChoice};
    do {
      Part sequence{.op = Part::Op::kSequence};
      while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
        QUIRE_ASSIGN_OR_RETURN(Part part, repeated(depth));
        sequence.parts.push_back(std::move(part));
      }
      choice.parts.push_back(std::move(sequence));
    } while (take('|'));
    return choice;
  }

  Result<Part> repeated(int depth) {
    QUIRE_ASSIGN_OR_RETURN(Part part, atom(depth));
    int least = 1, most = 1;
    if (take('*')) {
      least = 0, most = -1;
    } else if (take('+')) {
      most = -1;
    } else if (take('?')) {
      least = 0;
    } else if (take('{')) {
      if (!number(&least)) return bad();
      most = least;
      if (take(',') && !number(&most)) most = -1;
      if (!take('}') || (most >= 0 && most < least)) return bad();
    } else {
      return part;
    }
    take('?');  // lazy: the same names match
    Part repeat{.op = Part::Op::kRepeat, .least = least, .most = most};
    repeat.parts.push_back(std::move(part));
    return repeat;
  }

  bool number(int* value) {
    const size_t first = at_;
    *value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 && *value <= kMaxRepeat) {
      *value = *value * 10 + (text_[at_++] - '0');
    }
    return at_ > first && *value <= kMaxRepeat;
  }

  Result<Part> atom(int depth) {
    Part part{.op = Part::Op::kState};
    State& state = part.state;
    state.kind = Kind::kChar;
    const char c = text_[at_++];
    if (c == '(') {
      if (take('?') && !take(':')) return bad();
      QUIRE_ASSIGN_OR_RETURN(Part inner, alternatives(depth + 1));
      if (!take(')')) return bad();
      return inner;
    }
    if (c == '^' || c == '$') {
      state.kind = c == '^' ? Kind::kBegin : Kind::kEnd;
    } else if (c == '.') {
      state.chars.set();
    } else if (c == '[') {
      if (!char_set(&state.chars)) return bad();
    } else if (c == '\\') {
      bool known = at_ < text_.size();
      if (known) state.chars = class_of(text_[at_++], &known);
      if (!known) return bad();
    } else if (c == '*' || c == '+' || c == '?' || c == '{') {
      return bad();
    } else {
      state.chars.set(static_cast<unsigned char>(c));
    }
    return part;
  }

  bool char_set(std::bitset<256>* chars) {
    const bool negated = take('^');
    for (bool first = true; first || at_ >= text_.size() || text_[at_] != ']'; first = false) {
      if (at_ >= text_.size()) return false;
      char low = text_[at_++];
      if (low == '\\') {
        bool known = at_ < text_.size();
        if (known) *chars |= class_of(text_[at_++], &known);
        if (!known) return false;
        continue;
      }
      char high = low;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        high = text_[at_ + 1];
        at_ += 2;
      }
      for (int i = static_cast<unsigned char>(low); i <= static_cast<unsigned char>(high); ++i) {
        chars->set(static_cast<size_t>(i));
      }
    }
    ++at_;
    if (negated) chars->flip();
    return true;
  }

  int add(const State& state) {
    if (out_.states_.size() < kMaxStates) out_.states_.push_back(state);
    return static_cast<int>(out_.states_.size()) - 1;
  }

  // The state that begins `part` with `next` behind it.
  int build(const Part& part, int next) {
    if (out_.states_.size() >= kMaxStates) return next;
    switch (part.op) {
      case Part::Op::kState: {
        State state = part.state;
        state.next = next;
        return add(state);
      }
      case Part::Op::kSequence:
        for (size_t i = part.parts.size(); i-- > 0;) next = build(part.parts[i], next);
        return next;
      case Part::Op::kChoice: {
        int first = build(part.parts[0], next);
        for (size_t i = 1; i < part.parts.size(); ++i) {
          const int other = build(part.parts[i], next);
          first = add({.kind = Kind::kSplit, .next = first, .other = other});
        }
        return first;
      }
      case Part::Op::kRepeat: {
        if (part.most < 0) {
          const int loop = add({.kind = Kind::kSplit, .next = next, .other = next});
          const int body = build(part.parts[0], loop);
          out_.states_[static_cast<size_t>(loop)].other = body;
          next = loop;
        }
        for (int i = part.least; i < part.most; ++i) {
          const int body = build(part.parts[0], next);
          next = add({.kind = Kind::kSplit, .next = next, .other = body});
        }
        for (int i = 0; i < part.least; ++i) next = build(part.parts[0], next);
        return next;
      }
    }
    return next;
  }

  std::string_view text_;
  size_t at_ = 0;
  ModulePattern out_;
};

Result<ModulePattern> ModulePattern::parse(std::string_view pattern) { return ModulePatternParser(pattern).parse(); }

// Adds `first` and what it reaches without a character.
void ModulePattern::add(int first, size_t at, size_t length, std::vector<int>* list, std::vector<bool>* listed) const {
  std::vector<int> open = {first};
  while (!open.empty()) {
    const int index = open.back();
    open.pop_back();
    if ((*listed)[static_cast<size_t>(index)]) continue;
    (*listed)[static_cast<size_t>(index)] = true;
    const State& state = states_[static_cast<size_t>(index)];
    if (state.kind == Kind::kSplit) {
      open.push_back(state.next);
      open.push_back(state.other);
    } else if (state.kind == Kind::kBegin || state.kind == Kind::kEnd) {
      if (at == (state.kind == Kind::kBegin ? 0 : length)) open.push_back(state.next);
    } else {
      list->push_back(index);
    }
  }
}

bool ModulePattern::matches_start(std::string_view name) const {
  std::vector<int> now;
  std::vector<bool> listed(states_.size());
  add(start_, 0, name.size(), &now, &listed);
  for (size_t at = 0;; ++at) {
    std::vector<int> next;
    listed.assign(states_.size(), false);
    for (const int index : now) {
      const State& state = states_[static_cast<size_t>(index)];
      if (state.kind == Kind::kAccept) return true;
      if (at < name.size() && state.chars[static_cast<unsigned char>(name[at])]) {
        add(state.next, at + 1, name.size(), &next, &listed);
      }
    }
    if (at == name.size() || next.empty()) return false;
    now = std::move(next);
  }
}

}  // namespace quire
