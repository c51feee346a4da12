#include "options/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <type_traits>

namespace quire {
namespace {

template <typename T>
struct MemberValue;
template <typename T>
struct MemberValue<T Options::*> {
  using type = T;
};
template <typename T>
struct MemberValue<std::optional<T> Options::*> {
  using type = T;
};
// The type behind a member pointer, optional or not.
template <typename Member>
using ValueOf = typename MemberValue<std::remove_cvref_t<Member>>::type;

template <typename T>
inline constexpr bool kIsNumber =
    std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t> || std::is_same_v<T, double>;

std::string quoted(std::string_view text) { return std::string("\"").append(text).append("\""); }

std::string number_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string_view kind_text(const OptionRow& row) {
  return std::visit(
      [](auto member) -> std::string_view {
        using T = ValueOf<decltype(member)>;
        if constexpr (std::is_same_v<T, bool>) return "true or false";
        if constexpr (std::is_same_v<T, int64_t>) return "a whole number";
        if constexpr (std::is_same_v<T, uint64_t>) return "a whole number of 64 bits";
        if constexpr (std::is_same_v<T, double>) return "a number";
        if constexpr (std::is_same_v<T, std::string>) return "text";
        if constexpr (std::is_same_v<T, std::vector<std::string>>) return "text, or a list of texts";
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) return "a list of whole numbers";
      },
      row.member);
}

Status wrong_value(const OptionRow& row, std::string_view shown_as, const std::string& given) {
  return invalid_argument(std::string(shown_as) + " is " + given + "; it takes " + accepted_text(row));
}

template <typename T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parse_list(std::string_view text, std::vector<int64_t>& values) {
  while (true) {
    const size_t comma = text.find(',');
    if (!parse_number(text.substr(0, comma), values.emplace_back())) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

template <typename T>
bool in_range(const OptionRow& row, T number) {
  const auto value = static_cast<double>(number);
  return std::isfinite(value) && (row.above_minimum ? value > row.minimum : value >= row.minimum) &&
         value <= row.maximum;
}

// Numbers convert where no meaning is lost: 1 is a temperature and 3.0 a token count, 1.5 is none. A negative seed is a
// seed like another.
template <typename T>
std::optional<T> convert(const OptionValue& value) {
  if (const T* same = std::get_if<T>(&value)) return *same;
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* whole = std::get_if<uint64_t>(&value)) return static_cast<double>(*whole);
  }
  if constexpr (std::is_same_v<T, uint64_t> || std::is_same_v<T, int64_t>) {
    if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<T>(*whole);
    if (const auto* real = std::get_if<double>(&value)) {
      if (const auto whole = whole_number(*real)) return static_cast<T>(*whole);
    }
  }
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    if (const auto* one = std::get_if<std::string>(&value)) return std::vector{*one};
  }
  return std::nullopt;
}

template <typename T>
bool allowed(const OptionRow& row, const T& value) {
  if constexpr (kIsNumber<T>) return in_range(row, value);
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    return std::all_of(value.begin(), value.end(), [&](int64_t number) { return in_range(row, number); });
  }
  if constexpr (std::is_same_v<T, std::string>) {
    return row.choices.empty() || std::find(row.choices.begin(), row.choices.end(), value) != row.choices.end();
  }
  return true;
}

struct ShowValue {
  const OptionRow& row;

  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<std::string>&) const { return "a list of texts"; }
  std::string operator()(const std::vector<int64_t>& values) const {
    // What takes no list would seem to have been given what it takes.
    if (!std::holds_alternative<std::vector<int64_t> Options::*>(row.member)) return "a list of whole numbers";
    std::string text;
    for (const int64_t value : values) text.append(text.empty() ? "" : ",").append(std::to_string(value));
    return text;
  }
};

std::string spelled(const OptionRow& row, char dash, bool upper) {
  std::string text(row.name);
  for (char& c : text) {
    if (c == '-') c = dash;
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

const OptionRow* find_option(std::string_view name) {
  for (const OptionRow& row : option_table()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string environment_name(const OptionRow& row) { return "QUIRE_" + spelled(row, '_', true); }

std::string json_key(const OptionRow& row) { return spelled(row, '_', false); }

std::string default_text(const OptionRow& row) {
  if (!row.unset_text.empty()) return std::string(row.unset_text);
  const Options defaults;
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = defaults.*member;
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) return value;
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) return ShowValue{row}(value);
        return {};
      },
      row.member);
}

std::string value_text(const Options& options, const OptionRow& row) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = options.*member;
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return value;
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          std::string text;
          for (const std::string& one : value) text.append(text.empty() ? "" : ", ").append(quoted(one));
          return text;
        } else if constexpr (requires { value.has_value(); }) {
          return value ? ShowValue{row}(*value) : std::string();
        } else {
          return ShowValue{row}(value);
        }
      },
      row.member);
}

std::string range_text(const OptionRow& row, bool exact) {
  if (!row.choices.empty()) {
    std::string text;
    for (size_t i = 0; i < row.choices.size(); ++i) {
      if (i > 0) text += i + 1 == row.choices.size() ? " or " : ", ";
      text += row.choices[i];
    }
    return text;
  }
  const bool has_minimum = std::isfinite(row.minimum);
  constexpr double kLargestOfInterest = 1e6;
  const bool has_maximum = std::isfinite(row.maximum) && (exact || row.maximum <= kLargestOfInterest);
  if (!has_minimum && !has_maximum) return {};
  const std::string minimum = row.above_minimum ? "above " + number_text(row.minimum) : number_text(row.minimum);
  if (!has_maximum) return row.above_minimum ? minimum : minimum + " or more";
  if (row.above_minimum) return minimum + ", at most " + number_text(row.maximum);
  return minimum + " to " + std::to_string(static_cast<int64_t>(row.maximum));
}

std::string accepted_text(const OptionRow& row) {
  const std::string range = range_text(row, true);
  if (!row.choices.empty()) return range;
  return std::string(kind_text(row)) + (range.empty() ? "" : " of " + range);
}

std::optional<int64_t> whole_number(double value) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(value >= -kEnd && value < kEnd) || value != std::trunc(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

bool is_switch(const OptionRow& row) { return std::holds_alternative<bool Options::*>(row.member); }

bool is_list(const OptionRow& row) {
  return std::holds_alternative<std::vector<std::string> Options::*>(row.member) ||
         std::holds_alternative<std::vector<int64_t> Options::*>(row.member);
}

Result<OptionValue> parse_option(const OptionRow& row, std::string_view text, std::string_view shown_as) {
  OptionValue value;
  const bool understood = std::visit(
      [&](auto member) {
        using T = ValueOf<decltype(member)>;
        if constexpr (std::is_same_v<T, bool>) {
          value = text == "1";
          return text == "0" || text == "1";
        } else if constexpr (kIsNumber<T>) {
          T number{};
          if (parse_number(text, number)) {
            value = number;
            return true;
          }
          int64_t negative = 0;
          const bool parsed = std::is_same_v<T, uint64_t> && parse_number(text, negative);
          value = negative;
          return parsed;
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          return parse_list(text, value.emplace<T>());
        } else {
          value = std::string(text);
          return true;
        }
      },
      row.member);
  if (!understood) return wrong_value(row, shown_as, quoted(text));
  return value;
}

Status set_option(Options& options, const OptionRow& row, const OptionValue& value, std::string_view shown_as) {
  return std::visit(
      [&](auto member) -> Status {
        using T = ValueOf<decltype(member)>;
        const std::optional<T> converted = convert<T>(value);
        if (!converted || !allowed(row, *converted))
          return wrong_value(row, shown_as, std::visit(ShowValue{row}, value));
        options.*member = *converted;
        return {};
      },
      row.member);
}

Status read_environment(Options& options, Command command) {
  for (const OptionRow& row : option_table()) {
    if (!row.in_environment || (row.commands & command) == 0) continue;
    const std::string name = environment_name(row);
    const char* text = std::getenv(name.c_str());
    if (text == nullptr || *text == '\0') continue;
    QUIRE_ASSIGN_OR_RETURN(const OptionValue value, parse_option(row, text, name));
    QUIRE_RETURN_IF_ERROR(set_option(options, row, value, name));
  }
  return {};
}

}  // namespace quire
