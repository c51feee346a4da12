#include "jinja/known.h"

#include <algorithm>
#include <span>

#include "jinja/methods.h"

namespace quire::jinja {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kGlobals[] = {"cycler", "joiner", "lipsum"};
constexpr std::string_view kOfLoop[] = {"changed", "cycle", "depth", "depth0"};
constexpr std::string_view kOfMacro[] = {"arguments", "caller", "catch_kwargs", "catch_varargs", "name"};
constexpr std::string_view kInMacro[] = {"caller", "kwargs", "varargs"};
constexpr std::string_view kOfString[] = {
    "casefold",  "center",      "encode",  "expandtabs", "format",   "format_map",   "index",
    "isalnum",   "isalpha",     "isascii", "isdecimal",  "isdigit",  "isidentifier", "islower",
    "isnumeric", "isprintable", "isspace", "istitle",    "isupper",  "ljust",        "maketrans",
    "partition", "rindex",      "rjust",   "rpartition", "swapcase", "translate",    "zfill"};
constexpr std::string_view kOfList[] = {"copy", "count", "index"};
constexpr std::string_view kOfDict[] = {"copy", "fromkeys"};
constexpr std::string_view kOfRange[] = {"count", "index", "start", "step", "stop"};
constexpr std::string_view kOfNumber[] = {"as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
                                          "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
                                          "numerator",        "real",      "to_bytes"};

bool one_of(Names names, std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); }

Names refused_of(Kind kind) {
  switch (kind) {
    case Kind::kString:
      return kOfString;
    case Kind::kList:
    case Kind::kTuple:
      return kOfList;
    case Kind::kDict:
      return kOfDict;
    case Kind::kRange:
      return kOfRange;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return kOfNumber;
    default:
      return {};
  }
}

}  // namespace

Status not_known(std::string_view what, std::string_view name) {
  return unsupported("the " + std::string(what) + " " + quoted(name) +
                     " is not among those quire knows (docs/chat-templates.md lists them)");
}

bool is_refused_global(std::string_view name) { return one_of(kGlobals, name); }
bool is_refused_loop_attribute(std::string_view name) { return one_of(kOfLoop, name); }
bool is_refused_macro_attribute(std::string_view name) { return one_of(kOfMacro, name); }
bool is_refused_in_macro(std::string_view name) { return one_of(kInMacro, name); }
bool is_refused_attribute(Kind kind, std::string_view name) { return one_of(refused_of(kind), name); }

bool is_refused_method(std::string_view name) {
  for (const Names names : {Names(kOfString), Names(kOfList), Names(kOfDict), Names(kOfNumber)}) {
    if (one_of(names, name)) return !is_method(name);
  }
  return false;
}

}  // namespace quire::jinja
