// Names of requests that nobody can guess. Any thread.
#pragma once

#include <string>

namespace quire {

std::string random_id();  // 24 hexadecimal digits

}  // namespace quire
