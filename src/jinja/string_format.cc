// "{0.name!r:>10}".format(...). Reference: Python's "Format String Syntax".
#include <algorithm>

#include "jinja/attributes.h"
#include "jinja/format_spec.h"
#include "jinja/string_functions.h"
#include "jinja/value_text.h"

namespace quire::jinja {
namespace {

// Specifications may hold fields of their own, but those may not go on.
constexpr int kMaxFieldNesting = 2;

class Formatter {
 public:
  Formatter(Runtime& runtime, const Text& format, const Arguments& arguments)
      : runtime_(runtime), format_(format), arguments_(arguments) {}

  Result<Value> run() {
    TextBuilder out;
    QUIRE_RETURN_IF_ERROR(expand(0, format_.bytes.size(), kMaxFieldNesting, out));
    return runtime_.string(std::move(out), format_.markup);
  }

 private:
  Status expand(size_t begin, size_t end, int nesting, TextBuilder& out) {
    if (nesting == 0) return invalid_argument("format(): fields nest too deep");
    const std::string& bytes = format_.bytes;
    size_t at = begin;
    while (at < end) {
      const size_t brace = std::min(bytes.find_first_of("{}", at), end);
      out.append(format_, at, brace);
      if (brace == end) break;
      if (brace + 1 < end && bytes[brace + 1] == bytes[brace]) {
        out.append(format_, brace, brace + 1);
        at = brace + 2;
        continue;
      }
      if (bytes[brace] == '}') return invalid_argument("format(): single '}' in the format");
      QUIRE_ASSIGN_OR_RETURN(const size_t close, matching_brace(brace, end));
      QUIRE_RETURN_IF_ERROR(field(brace + 1, close, nesting, out));
      at = close + 1;
    }
    return Status();
  }

  Result<size_t> matching_brace(size_t open, size_t end) const {
    int depth = 0;
    for (size_t at = open; at < end; ++at) {
      depth += format_.bytes[at] == '{' ? 1 : format_.bytes[at] == '}' ? -1 : 0;
      if (depth == 0) return at;
    }
    return invalid_argument("format(): expected '}' before the end of the format");
  }

  // The name ends at ! or :, but inside [] both are part of a key.
  size_t name_end(size_t begin, size_t end) const {
    bool in_key = false;
    for (size_t at = begin; at < end; ++at) {
      const char c = format_.bytes[at];
      if (c == '[') in_key = true;
      if (c == ']') in_key = false;
      if (!in_key && (c == '!' || c == ':')) return at;
    }
    return end;
  }

  Status field(size_t begin, size_t end, int nesting, TextBuilder& out) {
    QUIRE_RETURN_IF_ERROR(runtime_.charge(1));
    const std::string& bytes = format_.bytes;
    size_t at = name_end(begin, end);
    QUIRE_ASSIGN_OR_RETURN(Value value, look_up(std::string_view(bytes).substr(begin, at - begin)));
    if (at < end && bytes[at] == '!') {
      if (at + 1 >= end || (at + 2 < end && bytes[at + 2] != ':')) {
        return invalid_argument("format(): expected ':' after the conversion");
      }
      QUIRE_ASSIGN_OR_RETURN(value, convert(value, bytes[at + 1]));
      at += 2;
    }
    TextBuilder spec;
    if (at < end) QUIRE_RETURN_IF_ERROR(expand(at + 1, end, nesting - 1, spec));
    const Text spec_text = spec.take();
    if (!format_.markup) return append_formatted(runtime_, value, spec_text, out);
    TextBuilder formatted;
    QUIRE_RETURN_IF_ERROR(append_formatted(runtime_, value, spec_text, formatted));
    const bool safe = value.is(Kind::kString) && value.text().markup;
    QUIRE_ASSIGN_OR_RETURN(const Value plain, runtime_.string(std::move(formatted), safe));
    return append_escaped(runtime_, plain, out);
  }

  Result<Value> convert(const Value& value, char conversion) {
    if (conversion == 's') return to_string(runtime_, value);
    if (conversion != 'r' && conversion != 'a') return invalid_argument("format(): unknown conversion after '!'");
    TextBuilder out;
    QUIRE_RETURN_IF_ERROR(append_repr(runtime_, value, Origin::kTemplate, out));
    if (conversion == 'r') return runtime_.string(std::move(out));
    return Value::string(runtime_.heap(), ascii_only(out.take()));
  }

  Result<Value> look_up(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    QUIRE_ASSIGN_OR_RETURN(Value value, argument(name.substr(0, first_end)));
    std::string_view rest = name.substr(first_end);
    while (!rest.empty()) {
      if (rest[0] == '.') {
        const size_t end = std::min(rest.find_first_of(".[", 1), rest.size());
        if (end == 1) return invalid_argument("format(): empty attribute in a field name");
        QUIRE_ASSIGN_OR_RETURN(value, get_attribute(runtime_, value, rest.substr(1, end - 1)));
        rest.remove_prefix(end);
        continue;
      }
      const size_t end = rest.find(']');
      if (rest[0] != '[' || end == std::string_view::npos)
        return invalid_argument("format(): missing ']' in a field name");
      if (end == 1) return invalid_argument("format(): empty key in a field name");
      const std::string_view key = rest.substr(1, end - 1);
      const Value item = is_number(key) ? Value::integer(std::stoll(std::string(key))) : runtime_.string(key);
      QUIRE_ASSIGN_OR_RETURN(value, get_item(runtime_, value, item));
      rest.remove_prefix(end + 1);
    }
    return value;
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 18 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  Result<Value> argument(std::string_view name) {
    if (name.empty() || is_number(name)) {
      const bool automatic = name.empty();
      if (numbering_ != Numbering::kNone && (numbering_ == Numbering::kAutomatic) != automatic) {
        return invalid_argument("format(): cannot mix automatic and explicit field numbers");
      }
      numbering_ = automatic ? Numbering::kAutomatic : Numbering::kExplicit;
      const size_t index = automatic ? next_++ : std::stoull(std::string(name));
      if (index >= arguments_.positional.size()) return invalid_argument("format(): no argument for a field");
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key.bytes == name) return value;
    }
    return invalid_argument("format(): no argument named '" + std::string(name) + "'");
  }

  enum class Numbering { kNone, kAutomatic, kExplicit };

  Runtime& runtime_;
  const Text& format_;
  const Arguments& arguments_;
  Numbering numbering_ = Numbering::kNone;
  size_t next_ = 0;
};

}  // namespace

Result<Value> format(Call& call) { return Formatter(call.runtime, call.subject.text(), call.rest).run(); }

Result<Value> format_map(Call& call) {
  if (!call.args[0].is(Kind::kDict)) return invalid_argument("format_map() wants a dict");
  Arguments arguments;
  for (const auto& [key, value] : call.args[0].dict().entries()) {
    if (key.is(Kind::kString)) arguments.named.emplace_back(key.text(), value);
  }
  return Formatter(call.runtime, call.subject.text(), arguments).run();
}

}  // namespace quire::jinja
