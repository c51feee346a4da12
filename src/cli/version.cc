#include "cli/help.h"

namespace quire {

std::string version_text() { return "quire " QUIRE_VERSION; }

}  // namespace quire
