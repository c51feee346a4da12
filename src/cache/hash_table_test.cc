#include "cache/hash_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

namespace quire {
namespace {

// Few home slots and a table at its limit, so that probes run into each other and around the end.
TEST(HashTable, AgreesWithAMap) {
  EXPECT_TRUE(rc::check([](const std::vector<uint8_t>& commands) {
    HashTable table(8);
    std::map<uint64_t, PageId> map;
    for (const uint8_t command : commands) {
      const uint64_t low = (command % 16) * 5;  // 32 slots: homes 0, 5, ... 75 wrap
      const Hash128 hash{low, low};
      if (map.contains(low)) {
        RC_ASSERT(!table.insert(hash, 99));
        if (command < 128) {
          table.erase(hash);
          map.erase(low);
        } else {
          table.replace(hash, command);
          map[low] = command;
        }
      } else if (map.size() < 8) {
        RC_ASSERT(table.insert(hash, command));
        map[low] = command;
      }
      for (uint64_t key = 0; key < 80; ++key) {
        RC_ASSERT(table.find({key, key}) == (map.contains(key) ? map[key] : kNoPage));
      }
      RC_ASSERT(table.size() == static_cast<int64_t>(map.size()));
    }
  }));
}

}  // namespace
}  // namespace quire
