// XXH64, a checksum of 64 bits at memory's speed (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md). It finds what
// disks and memory do to bytes by mistake; it does not resist anybody who wants a certain sum. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed);

}  // namespace quire
