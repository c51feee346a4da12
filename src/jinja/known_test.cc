// What quire does not know is refused before anything is rendered, with its name and line.
#include "jinja/known.h"

#include <gtest/gtest.h>

#include "jinja/compiler.h"
#include "jinja/interpreter.h"

namespace quire::jinja {
namespace {

constexpr const char* kFilters[] = {"attr",        "center",    "e",         "escape",   "filesizeformat",
                                    "forceescape", "format",    "from_json", "groupby",  "pprint",
                                    "random",      "slice",     "striptags", "truncate", "urlencode",
                                    "urlize",      "wordcount", "wordwrap",  "xmlattr"};
constexpr const char* kTests[] = {"callable", "escaped", "filter", "lower", "prime", "test", "upper"};
constexpr const char* kMethods[] = {
    "as_integer_ratio", "bit_length", "casefold",   "center",   "conjugate",    "copy",       "encode",
    "expandtabs",       "format",     "format_map", "fromkeys", "index",        "is_integer", "isalnum",
    "isalpha",          "isascii",    "isdecimal",  "isdigit",  "isidentifier", "islower",    "isnumeric",
    "isprintable",      "isspace",    "istitle",    "isupper",  "ljust",        "maketrans",  "partition",
    "rindex",           "rjust",      "rpartition", "swapcase", "translate",    "zfill"};
constexpr const char* kGlobals[] = {"cycler", "joiner", "lipsum"};
constexpr const char* kTags[] = {"autoescape", "block",   "call",  "debug", "do",   "extends",   "from",
                                 "import",     "include", "print", "trans", "with", "frobnicate"};
constexpr const char* kLoopAttributes[] = {"changed", "cycle", "depth", "depth0"};
constexpr const char* kMacroVariables[] = {"caller", "kwargs", "varargs"};

std::string refusal(const std::string& source) {
  const auto program = compile(source);
  return program.ok() ? "compiled" : program.status().message();
}

void expect_refused(const std::string& source, const std::string& what) {
  EXPECT_EQ(refusal("one\n\n" + source),
            "line 3: the " + what + " is not among those quire knows (docs/chat-templates.md lists them)");
}

TEST(Known, NamesAreRefusedAsTheTemplateIsParsed) {
  for (const std::string name : kFilters) expect_refused("{{ x|" + name + "(1) }}", "filter '" + name + "'");
  for (const std::string name : kTests) expect_refused("{{ x is " + name + " }}", "test '" + name + "'");
  for (const std::string name : kMethods) expect_refused("{{ x." + name + "() }}", "method '" + name + "'");
  for (const std::string name : kGlobals) expect_refused("{{ " + name + "(1) }}", "function '" + name + "'");
  for (const std::string name : kTags) expect_refused("{% " + name + " %}", "tag '" + name + "'");
  for (const std::string name : kLoopAttributes) {
    expect_refused("{% for x in y %}{{ loop." + name + " }}{% endfor %}", "attribute 'loop." + name + "'");
  }
  for (const std::string name : kMacroVariables) {
    expect_refused("{% macro m() %}{{ " + name + " }}{% endmacro %}", "variable of a macro '" + name + "'");
  }
  expect_refused("{{ x.__class__ }}", "attribute '__class__'");
}

TEST(Known, SoIsSyntax) {
  const std::pair<const char*, const char*> cases[] = {
      {"{% for a in b recursive %}{% endfor %}", "the mark of a loop 'recursive'"},
      {"{{ 2 ** 3 }}", "the operator '**'"},
      {"{{ +a }}", "the sign '+'"},
      {"{{ f(*a) }}", "'*' before an argument"},
      {"{{ f(**a) }}", "'**' before an argument"},
      {"{{ a < b < c }}", "a chain of comparisons"},
      {"{{ a[1, 2] }}", "a tuple as a key"},
      {"{{ 0x1F }}", "a number that begins with '0x'"},
      {"{{ 1_000 }}", "a number that begins with '1_'"},
      {"{{ 9223372036854775808 }}", "the integer 9223372036854775808 has more than 64 bits"},
      {"{{ '\\101' }}", "a backslash before '1'"},
      {"{{ '\\N{DASH}' }}", "a backslash before 'N'"},
      {"{{ '\\é' }}", "a backslash before 'é'"},
      {"{{ größe }}", "unexpected character 'ö'"},
      {"{{ 1 @ 2 }}", "unexpected character '@'"},
  };
  for (const auto& [source, message] : cases) {
    const std::string said = refusal("\n" + std::string(source));
    EXPECT_TRUE(said.starts_with("line 2: ")) << source << ": " << said;
    EXPECT_NE(said.find(message), std::string::npos) << source << ": " << said;
  }
}

// The text, or how rendering failed.
std::string outcome(const std::string& source) {
  const auto program = compile(source);
  if (!program.ok()) return "not compiled: " + program.status().message();
  Runtime runtime(0);
  Dict::Entries entries;
  entries.emplace_back(runtime.string("title"), runtime.string("from the dict"));
  Variables variables = {{"d", make_dict(runtime.heap(), std::move(entries))}};
  const auto text = Interpreter(runtime, *program, std::move(variables)).run();
  return text.ok() ? text->bytes : text.status().message();
}

// What only the values tell is refused when the template gets there.
TEST(Known, AttributesOfValuesAreRefusedAsTheyAreReached) {
  const std::pair<const char*, const char*> cases[] = {
      {"{{ 'a'['center'] }}", "line 1: the method 'center'"},
      {"{{ [1]['index'] }}", "line 1: the method 'index'"},
      {"{{ {}.copy }}", "line 1: the method 'copy'"},
      {"{% set n = 1 %}{{ n.real }}", "line 1: the method 'real'"},
      {"{{ range(3).stop }}", "line 1: the method 'stop'"},
      {"{% for a in [1] %}{{ loop['cycle'] }}{% endfor %}", "line 1: the attribute 'loop.cycle'"},
      {"{% macro m() %}{% endmacro %}{{ m.name }}", "line 1: the attribute of a macro 'name'"},
      {"{{ [1]|map('urlize')|list }}", "line 1: the filter 'urlize'"},
      {"{{ [1]|select('escaped')|list }}", "line 1: the test 'escaped'"},
      {"{% if true %}{{ 1|urlize }}{% endif %}", "line 1: the filter 'urlize'"},
      {"{{ '%x' % 1 }}", "line 1: the conversion '%x'"},
      {"{{ '%*d' % (1, 2) }}", "line 1: the conversion '%*'"},
      {"{{ '%(a)s' % {'a': 1} }}", "line 1: the conversion '%('"},
      {"{{ 'a b'.rsplit() }}", "rsplit() wants a separator in quire"},
      {"{{ dict([('a', 1)]) }}", "dict and namespace take no 'list' in quire"},
      {"{{ '%.3d' % 1 }}", "knows no precision of an integer"},
      {"{{ range(9)[1:] }}", "a value of type 'range' cannot be sliced"},
      {"{{ 1.5|round(-1) }}", "round takes a precision of 0 to 18"},
      {"{{ '11'|int(0, 2) }}", "int() takes at most 1 arguments, got 2"},
      {"{{ 'a'.find('a', 1) }}", "find() takes at most 1 arguments, got 2"},
      {"{{ ('a'|safe) + 'b' }}", "a text of the filter 'safe' is only to be printed or joined by '~'"},
      {"{{ 'b' + ('a'|safe) }}", "a text of the filter 'safe'"},
      {"{{ ('%s'|safe) % 'b' }}", "a text of the filter 'safe'"},
      {"{{ ('-'|safe).join(['b']) }}", "a text of the filter 'safe'"},
      {"{{ ['a'|safe] }}", "a text of the filter 'safe'"},
  };
  for (const auto& [source, message] : cases) {
    EXPECT_NE(outcome(source).find(message), std::string::npos) << source << ": " << outcome(source);
  }
}

TEST(Known, WhatIsNotReachedIsNotRefused) {
  EXPECT_EQ(outcome("{% if false %}{{ 1|urlize }}{% endif %}{{ (1 is prime) if false else 'ok' }}"), "ok");
  EXPECT_EQ(outcome("{% macro cycler() %}own{% endmacro %}{{ cycler() }}"), "own");
  EXPECT_EQ(outcome("{{ d['center'] }}{{ d.center }}{{ ('a'|safe) ~ 'b' }}{{ 'c'|safe|upper }}"), "abC");
}

// A dict's own key counts where Python's dict has no such method.
TEST(Known, MethodsOfOtherKindsAreKeys) { EXPECT_EQ(outcome("{{ d.title }}"), "from the dict"); }

}  // namespace
}  // namespace quire::jinja
