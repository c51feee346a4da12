// Hugging Face's tensor names and the canonical ones (formats/checkpoint.h), in both directions.
#pragma once

#include <string>
#include <string_view>

#include "formats/families.h"

namespace quire {

// Empty when the family has no such tensor. Accepts the prefixes of multimodal checkpoints around the text model.
std::string canonical_from_hf(std::string_view hf_name, const Family& family);

// The text-only spelling; `canonical_name` itself where Hugging Face has no counterpart.
std::string hf_from_canonical(std::string_view canonical_name, const Family& family);

}  // namespace quire
