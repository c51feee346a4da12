// The loop of --jsonl: one JSON request a line from standard input, one answer a line to standard output, in order.
#pragma once

#include <functional>

#include "base/status.h"
#include "cli/json_object.h"
#include "cli/json_request.h"

namespace quire {

// Reads until standard input ends. A line that cannot be answered gets {"error": what is wrong}, and the loop goes on.
// Each answer is flushed. Fails only when standard output cannot be written.
Status answer_lines(const std::function<Result<JsonObject>(JsonRequest&)>& answer);

}  // namespace quire
