#include "tensor/weight_type.h"

#include <cmath>

namespace quire {

std::string weight_type_name(const WeightType& type) {
  const std::string element(dtype_info(type.dtype).name);
  std::string name;
  switch (type.codes) {
    case CodeKind::kNone:
      return element;
    case CodeKind::kInt4:
      name = "int4";
      break;
    case CodeKind::kInt8:
      name = "int8";
      break;
    case CodeKind::kFp8:
      name = "e4m3";
      break;
  }
  name += type.group == kWholeRow ? "/row" : "/" + std::to_string(type.group);
  return name + (type.zeros ? "z " : " ") + element;
}

float e4m3_to_f32(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  float value = 0;
  if (exponent == 15 && mantissa == 7) {
    value = NAN;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), -9);
  } else {
    value = std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  }
  return (code & 0x80) != 0 ? -value : value;
}

}  // namespace quire
