// Bounds on what a template may cost. A template comes with a downloaded model and its variables come from clients,
// so both are hostile: every bound ends in a Status, never in a full stack or a full machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire::jinja {

inline constexpr size_t kMaxSourceBytes = size_t{2} << 20;
// Nesting of statements and expressions in a template: bounds the recursion of parser, scope analysis and evaluation.
inline constexpr int kMaxSourceNesting = 200;
// Nested evaluations at run time: recursion of macros and loops times the nesting of their bodies.
#ifdef __SANITIZE_ADDRESS__
inline constexpr int kMaxCallDepth = 250;  // AddressSanitizer's frames are several times as large
#else
inline constexpr int kMaxCallDepth = 1500;
#endif
// Nesting of arrays and objects in input JSON.
inline constexpr int kMaxJsonDepth = 500;
inline constexpr int64_t kMaxSteps = 50'000'000;
inline constexpr size_t kMaxOutputBytes = size_t{64} << 20;
// Any one string, list or dict, and everything alive at one moment of a rendering.
inline constexpr size_t kMaxValueBytes = size_t{64} << 20;
inline constexpr size_t kMaxListItems = size_t{2} << 20;
inline constexpr size_t kMaxLiveBytes = size_t{512} << 20;
// What jinja2's sandbox allows range() to span.
inline constexpr int64_t kMaxRangeItems = 100'000;
// So that no sum of a bound and steps overflows.
inline constexpr int64_t kMaxRangeBound = int64_t{1} << 60;
// String work that costs as much as evaluating one node.
inline constexpr size_t kBytesPerStep = 64;

}  // namespace quire::jinja
