#include "text/shipped_texts.h"

// The assembler copies the files in: a string literal of this length would take the compiler long.
asm(R"(
    .section .rodata
    .global quire_calibration_begin, quire_calibration_end, quire_evaluation_begin, quire_evaluation_end
quire_calibration_begin:
    .incbin ")" QUIRE_DATA_DIR R"(/calibration.txt"
quire_calibration_end:
quire_evaluation_begin:
    .incbin ")" QUIRE_DATA_DIR R"(/evaluation.txt"
quire_evaluation_end:
    .previous
)");

extern "C" {
extern const char quire_calibration_begin[], quire_calibration_end[];
extern const char quire_evaluation_begin[], quire_evaluation_end[];
}

namespace quire {

std::string_view calibration_text() { return {quire_calibration_begin, quire_calibration_end}; }

std::string_view evaluation_text() { return {quire_evaluation_begin, quire_evaluation_end}; }

}  // namespace quire
