#include "cache/prefix_index.h"

#include <algorithm>

#include "base/check.h"

namespace quire {
namespace {

// A popular prefix may have thousands of continuations; explaining a miss looks at the newest ones.
constexpr int kSiblingsCompared = 16;

}  // namespace

PrefixIndex::PrefixIndex(int64_t pages, int64_t page_tokens)
    : page_tokens_(page_tokens),
      entries_(static_cast<size_t>(pages)),
      tokens_(static_cast<size_t>(pages * page_tokens)),
      pages_(pages),
      first_child_(pages),
      evicted_(static_cast<size_t>(pages) + 1) {}

std::span<const int32_t> PrefixIndex::tokens(PageId page) const {
  return {tokens_.data() + page * page_tokens_, static_cast<size_t>(page_tokens_)};
}

PageId PrefixIndex::find(const Hash128& hash, std::span<const int32_t> wanted) const {
  const PageId page = find_compared(hash);
  return page != kNoPage && std::ranges::equal(tokens(page), wanted) ? page : kNoPage;
}

PageId PrefixIndex::find_compared(const Hash128& hash) const { return pages_.find(hash); }

bool PrefixIndex::publish(PageId page, const Hash128& parent, const Hash128& hash, std::span<const int32_t> content) {
  QUIRE_CHECK(static_cast<int64_t>(content.size()) == page_tokens_);
  Entry& published = entry(page);
  if (published.published || !pages_.insert(hash, page)) return false;
  std::ranges::copy(content, tokens_.begin() + page * page_tokens_);
  published = {hash, parent, kNoPage, kNoPage, true};
  if (!first_child_.insert(parent, page)) {
    published.next_sibling = first_child_.find(parent);
    entry(published.next_sibling).previous_sibling = page;
    first_child_.replace(parent, page);
  }
  return true;
}

void PrefixIndex::evict(PageId page) {
  Entry& gone = entry(page);
  QUIRE_CHECK(gone.published);
  pages_.erase(gone.hash);
  if (gone.next_sibling != kNoPage) entry(gone.next_sibling).previous_sibling = gone.previous_sibling;
  if (gone.previous_sibling != kNoPage) {
    entry(gone.previous_sibling).next_sibling = gone.next_sibling;
  } else if (gone.next_sibling != kNoPage) {
    first_child_.replace(gone.parent, gone.next_sibling);
  } else {
    first_child_.erase(gone.parent);
  }
  evicted_[evicted_slot(gone.hash)] = gone.hash;
  gone = {};
  ++evictions_;
}

std::optional<int64_t> PrefixIndex::longest_agreement(const Hash128& parent, std::span<const int32_t> wanted) const {
  PageId page = first_child_.find(parent);
  if (page == kNoPage) return std::nullopt;
  int64_t longest = 0;
  for (int i = 0; i < kSiblingsCompared && page != kNoPage; ++i, page = entry(page).next_sibling) {
    const auto differs = std::ranges::mismatch(tokens(page), wanted);
    longest = std::max<int64_t>(longest, differs.in2 - wanted.begin());
  }
  return longest;
}

Status PrefixIndex::check() const {
  int64_t published = 0;
  for (PageId page = 0; page < static_cast<PageId>(entries_.size()); ++page) {
    if (!entry(page).published) continue;
    ++published;
    if (pages_.find(entry(page).hash) != page) {
      return corrupt("page " + std::to_string(page) + ": its hash does not lead to it");
    }
    const PageId before = entry(page).previous_sibling;
    if (before == kNoPage ? first_child_.find(entry(page).parent) != page
                          : entry(before).next_sibling != page || !(entry(before).parent == entry(page).parent)) {
      return corrupt("page " + std::to_string(page) + ": broken sibling links");
    }
  }
  if (published != size()) return corrupt("the prefix index leads to pages without that hash");
  return {};
}

}  // namespace quire
