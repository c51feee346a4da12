// The pages of one KV group: who counts on each, and which may be taken next. Integers only; the bytes are elsewhere.
//
// A page is free when nobody references it. A free page keeps its content until it is taken again, so the prefix index
// may still lead to it: taking is the eviction. The free list is doubly linked through the records, so a page in its
// middle is revived in constant time. Taken from the front: pages without a findable content first, then least
// recently used.
//
// Thread: one at a time. Misuse (taking from an empty list, dropping a free page) is a bug and checked.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace quire {

using PageId = int32_t;
inline constexpr PageId kNoPage = -1;

class PagePool {
 public:
  PagePool(int64_t pages, int64_t page_tokens);

  int64_t pages() const { return static_cast<int64_t>(records_.size()); }
  int64_t free_pages() const { return free_pages_; }
  int64_t used_pages() const { return pages() - free_pages_; }
  int64_t live_slots() const { return live_slots_; }  // slots with a committed token, over the used pages
  int32_t references(PageId page) const { return record(page).references; }
  int32_t filled(PageId page) const { return record(page).filled; }

  // A free page, from the front of the list; its content is lost.
  PageId take();

  // The first of `count` consecutive free pages, all taken; kNoPage when there is no such run.
  PageId take_run(int64_t count);

  // One more table holds the page; a free page leaves the free list with its content intact.
  void add_reference(PageId page);

  // One table less. The last one frees the page: to the back of the list if its content can still be found.
  void drop(PageId page, bool findable);

  // How many slots of a used page hold committed tokens.
  void set_filled(PageId page, int64_t slots);

  // Fails with the first broken invariant of list, counts and `tables[page]`, the number of tables that hold a page.
  Status check(const std::vector<int32_t>& tables) const;

 private:
  struct Record {
    int32_t references = 0;
    int32_t filled = 0;
    PageId previous = kNoPage;
    PageId next = kNoPage;
  };

  Record& record(PageId page) { return records_[static_cast<size_t>(page)]; }
  const Record& record(PageId page) const { return records_[static_cast<size_t>(page)]; }
  void unlink(PageId page);
  void link_front(PageId page);
  void link_back(PageId page);
  void start_use(PageId page);

  std::vector<Record> records_;
  int64_t page_tokens_;
  int64_t free_pages_ = 0;
  int64_t live_slots_ = 0;
  PageId front_ = kNoPage;
  PageId back_ = kNoPage;
};

}  // namespace quire
