// A chat with a person: reads messages and commands, prints answers, until the person leaves.
#pragma once

#include "base/status.h"
#include "engine/generator.h"
#include "options/options.h"

namespace quire {

// Standard input is a terminal. Where standard output is none, or the terminal cannot be edited on, lines are read as they
// come. Fails with kCancelled where Ctrl-C was pressed twice.
Status chat_with_person(Generator& generator, const Options& options);

}  // namespace quire
