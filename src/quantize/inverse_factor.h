// The factor of an inverse that GPTQ walks along.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace quire {

// For a symmetric positive definite matrix h [n][n], the upper triangular u with inverse(h) = transpose(u) * u, in place;
// below the diagonal it is 0. False, and h is lost, where a pivot is not positive.
//
// With both orders of rows and columns reversed, h = l * transpose(l), and u is the inverse of l reversed again: one
// factorization and one triangular inversion, done together in halves whose products run on the device.
bool upper_inverse_factor(Device& device, std::vector<float>& h, int64_t n);

}  // namespace quire
