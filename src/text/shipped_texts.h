// Texts that are part of the program, so that a model can be judged and a quantizer calibrated without any file: mixed
// English prose, and in the calibration text also code and dialogue. They have no work in common, so a model calibrated on
// one is judged fairly on the other; pieces of the works alternate, so every beginning of a text is a mixture too.
// Both are UTF-8 and in the public domain; data/README.md names their sources. Constants; any thread.
#pragma once

#include <string_view>

namespace quire {

std::string_view calibration_text();  // 336 kB
std::string_view evaluation_text();   // 98 kB

}  // namespace quire
