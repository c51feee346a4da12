// Any bytes as a recording: an error, or steps that are within the bounds of their model and come back as they were read.
#include <cstdlib>
#include <string_view>

#include "engine/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  auto reader = quire::RecordingReader::over(text);
  if (!reader.ok()) return 0;
  while (true) {
    const auto step = reader->next();
    if (!step.ok() || !step->has_value()) return 0;
    const auto again = quire::RecordedStep::parse((*step)->bytes(), reader->run().bounds);
    if (!again.ok() || again->bytes() != (*step)->bytes()) std::abort();
  }
}
