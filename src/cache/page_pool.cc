#include "cache/page_pool.h"

#include "base/check.h"

namespace quire {

PagePool::PagePool(int64_t pages, int64_t page_tokens)
    : records_(static_cast<size_t>(pages)), page_tokens_(page_tokens) {
  for (PageId page = 0; page < pages; ++page) link_back(page);
}

PageId PagePool::take() {
  QUIRE_CHECK(front_ != kNoPage);
  const PageId page = front_;
  start_use(page);
  return page;
}

PageId PagePool::take_run(int64_t count) {
  if (count > free_pages_) return kNoPage;
  int64_t run = 0;
  for (PageId page = 0; page < pages(); ++page) {
    run = record(page).references == 0 ? run + 1 : 0;
    if (run < count) continue;
    const PageId first = static_cast<PageId>(page - count + 1);
    for (PageId taken = first; taken <= page; ++taken) start_use(taken);
    return first;
  }
  return kNoPage;
}

void PagePool::start_use(PageId page) {
  unlink(page);
  record(page).references = 1;
  record(page).filled = 0;
}

void PagePool::add_reference(PageId page) {
  if (record(page).references == 0) {
    unlink(page);
    live_slots_ += record(page).filled;
  }
  ++record(page).references;
}

void PagePool::drop(PageId page, bool findable) {
  QUIRE_CHECK(record(page).references > 0);
  if (--record(page).references > 0) return;
  live_slots_ -= record(page).filled;
  if (findable) {
    link_back(page);
  } else {
    link_front(page);
  }
}

void PagePool::set_filled(PageId page, int64_t slots) {
  QUIRE_CHECK(record(page).references > 0 && slots >= 0 && slots <= page_tokens_);
  live_slots_ += slots - record(page).filled;
  record(page).filled = static_cast<int32_t>(slots);
}

void PagePool::unlink(PageId page) {
  const Record& removed = record(page);
  (removed.previous == kNoPage ? front_ : record(removed.previous).next) = removed.next;
  (removed.next == kNoPage ? back_ : record(removed.next).previous) = removed.previous;
  --free_pages_;
}

void PagePool::link_front(PageId page) {
  record(page).previous = kNoPage;
  record(page).next = front_;
  (front_ == kNoPage ? back_ : record(front_).previous) = page;
  front_ = page;
  ++free_pages_;
}

void PagePool::link_back(PageId page) {
  record(page).previous = back_;
  record(page).next = kNoPage;
  (back_ == kNoPage ? front_ : record(back_).next) = page;
  back_ = page;
  ++free_pages_;
}

Status PagePool::check(const std::vector<int32_t>& tables) const {
  const auto broken = [](PageId page, const std::string& what) {
    return corrupt("page " + std::to_string(page) + ": " + what);
  };
  std::vector<bool> listed(records_.size());
  int64_t length = 0;
  PageId previous = kNoPage;
  for (PageId page = front_; page != kNoPage; previous = page, page = record(page).next) {
    if (listed[static_cast<size_t>(page)]) return broken(page, "twice on the free list");
    listed[static_cast<size_t>(page)] = true;
    if (record(page).previous != previous) return broken(page, "free list links disagree");
    ++length;
  }
  if (back_ != previous) return broken(back_, "is not the end of the free list");
  if (length != free_pages_) return broken(kNoPage, "free count is not the length of the free list");
  int64_t live = 0;
  for (PageId page = 0; page < pages(); ++page) {
    const int32_t references = record(page).references;
    if (references != tables[static_cast<size_t>(page)]) {
      return broken(page, std::to_string(references) + " references, held by " +
                              std::to_string(tables[static_cast<size_t>(page)]) + " tables");
    }
    if ((references == 0) != listed[static_cast<size_t>(page)]) return broken(page, "free and used at once");
    if (references > 0) live += record(page).filled;
  }
  if (live != live_slots_) return broken(kNoPage, "live slots miscounted");
  return {};
}

}  // namespace quire
