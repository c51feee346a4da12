// `quire inspect --what-if`: the table of capacity/what_if.h for people, or as JSON.
#pragma once

#include "capacity/what_if.h"

namespace quire {

void print_what_if(const WhatIf& answer);
void print_what_if_json(const WhatIf& answer);

}  // namespace quire
