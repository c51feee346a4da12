#include "jinja/filters.h"

namespace quire::jinja {

const Builtin* find_filter(std::string_view name) {
  for (const auto table : {text_filters(), sequence_filters(), selection_filters(), number_filters()}) {
    if (const Builtin* filter = find_builtin(table, name)) return filter;
  }
  return nullptr;
}

}  // namespace quire::jinja
