// Answers as `quire run` gives them: the text on standard output while it comes, the report on standard error.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "cli/interrupt.h"
#include "engine/generator.h"
#include "options/options.h"

namespace quire {

// Loads the weights where that was not done, generates, and prints. On a terminal the text is wrapped and its code coloured;
// elsewhere what is written is the answer, byte for byte. Ctrl-C makes the finish reason "cancelled".
Result<GenerateResult> print_answer(Generator& generator, const Options& options, std::vector<int32_t> prompt,
                                    const InterruptScope& interrupt);

}  // namespace quire
