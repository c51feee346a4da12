// JSON in and out of templates.
#pragma once

#include <string_view>

#include "jinja/runtime.h"

namespace quire::jinja {

// Reads one JSON document. All of it is the caller's, punctuation of later printing included; key order is kept, of
// equal keys the last value counts. `what` names the text in messages.
Result<Value> parse_json(Runtime& runtime, std::string_view text, std::string_view what);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  Text indent;  // one level
  Text item_separator = make_text(", ", Origin::kTemplate);
  Text key_separator = make_text(": ", Origin::kTemplate);
};

// Writes what Python's json.dumps writes. Fails for kinds it does not know.
Result<Value> write_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace quire::jinja
