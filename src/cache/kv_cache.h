// Which pages hold the keys and values of which tokens: pools, prefix index and page tables of all KV groups together.
//
// A group is a set of layers that share a page table. A global group keeps every token of a sequence; a window group
// frees the pages that no later row can see. Whatever is reserved is reserved in every group or in none, and a prefix
// is found only if every group still has what the next row needs of it. Groups get their pages when the model loads.
//
// Rules that hold between calls:
//   * a page is referenced by exactly as many tables as hold it, and free when by none;
//   * only full pages of committed tokens can be found, and a page that can be found is never written;
//   * finding does not reserve: admit() takes hits off the free lists before it takes any page for writing.
//
// Layout kContiguous is the baseline that paging is measured against: the longest sequence is reserved as consecutive
// pages up front, nothing is shared, and windows free nothing. Tables and kernels are the same.
//
// Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (SOSP 2023).
// Thread: one at a time. Holds integers only; whoever owns the bytes carries out the PageMove list.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/page_pool.h"
#include "cache/prefix_index.h"
#include "cache/siphash.h"

namespace quire {

enum class KvLayout { kPaged, kContiguous };

struct KvGroupConfig {
  int64_t pages = 0;
  int64_t window = 0;  // tokens a row sees, itself included; 0: all of them
  int64_t layers = 1;  // that share the table: the group's weight in the time of a step
};

struct KvCacheConfig {
  std::vector<KvGroupConfig> groups;
  int64_t page_tokens = 16;         // a power of two
  int64_t max_sequence_tokens = 0;  // that have K and V, of one sequence: the context
  KvLayout layout = KvLayout::kPaged;
  bool prefix_caching = true;  // only with kPaged
  HashKey hash_key;            // random in each process
  std::string fingerprint;     // of whatever changes K and V: model, KV type, rope variant
};

// One sequence's pages. Filled and emptied by KvCache only; `table` is what StepInput wants.
struct SequencePages {
  struct Group {
    std::vector<PageId> table;  // page of tokens [i * page_tokens, ...); kNoPage before first_live
    int64_t first_live = 0;
  };
  std::vector<Group> groups;
  Hash128 root;                 // tenant salt and fingerprint
  std::vector<Hash128> hashes;  // of the full pages of the sequence's tokens, as far as they were needed
  int64_t published = 0;        // leading pages that were offered to the index
};

// Bytes of pages that move before a step's forward pass, in order. The other slots of a target keep what they hold.
struct PageMove {
  enum class Kind : uint8_t {
    kCopy,  // the first `slots` slots of page `from` to page `to`
    kSave,  // page `from` to place `to` of the page store
    kLoad,  // place `from` of the page store to page `to`
  };
  Kind kind = Kind::kCopy;
  int32_t group = 0;
  PageId from = kNoPage;
  PageId to = kNoPage;
  int32_t slots = 0;

  bool operator==(const PageMove&) const = default;
};

struct PrefixMatch {
  int64_t pages = 0;   // found in every group
  int64_t tokens = 0;  // the same in tokens
  int64_t limit = 0;   // pages that could have been used at most
};

// Why no more of a prompt was found.
enum class MatchEnd {
  kNone,       // every page that may come from the cache did
  kDisabled,   // the cache is off, or this request must compute every row
  kTooShort,   // not one full page before the last token
  kEvicted,    // the next page was found once, and has been written again since
  kSalt,       // nothing under this tenant's salt; other tenants' pages are not shared
  kDifferent,  // the closest known continuation differs at token `differs_at`
  kUnknown,    // nothing that continues this prefix has been computed
};
std::string_view match_end_name(MatchEnd end);

struct MatchExplanation {
  MatchEnd end = MatchEnd::kUnknown;
  int64_t differs_at = -1;  // position in the prompt; kDifferent only
};

struct KvUsage {
  int64_t pages = 0;
  int64_t used_slots = 0;  // in pages that some sequence references
  int64_t live_slots = 0;  // of those, slots with a committed token; a shared one counts once
  int64_t findable_pages = 0;
  int64_t evictions = 0;
};

class KvCache {
 public:
  // Fails when a group cannot hold one row of a sequence (one whole sequence if contiguous); says the numbers.
  static Result<KvCache> create(KvCacheConfig config);

  const KvCacheConfig& config() const { return config_; }
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }
  int64_t pages_for(int64_t tokens) const { return page_at(tokens + config_.page_tokens - 1); }

  // Tokens whose K and V a sequence can have when it is alone.
  int64_t most_tokens() const;

  // Replaces the configuration's, for what is known only after the model is loaded. Before the first sequence.
  void set_fingerprint(std::string fingerprint) { config_.fingerprint = std::move(fingerprint); }

  SequencePages new_sequence(std::string_view salt) const;

  // The longest usable prefix of `tokens`, at most `limit` of them. Valid until the next change of the cache.
  PrefixMatch match(SequencePages& pages, std::span<const int32_t> tokens, int64_t limit) const;
  MatchExplanation explain(const SequencePages& pages, std::span<const int32_t> tokens, const PrefixMatch& match) const;

  // References the match and reserves the pages up to token `upto`. False, and nothing changes, when a group lacks pages.
  bool admit(SequencePages& pages, const PrefixMatch& match, int64_t upto);

  // How many rows from `computed` on could be reserved right now; and at most, were the cache otherwise empty.
  int64_t reservable_rows(const SequencePages& pages, int64_t computed) const;
  int64_t most_rows(int64_t computed) const;

  // Makes the slots [computed, upto) writable: new pages, and a copy of a partial page that others share too.
  // False, and nothing changes, when a group lacks pages.
  bool reserve(SequencePages& pages, int64_t computed, int64_t upto, std::vector<PageMove>& copies);

  // Tokens [from, to) have been computed. Gives back pages behind `to`, publishes full pages, and frees those that fell
  // out of a window; `tokens` are the sequence's, at least `to` of them.
  void commit(SequencePages& pages, std::span<const int32_t> tokens, int64_t from, int64_t to);

  void release(SequencePages& pages);

  // A second sequence with the same `computed` tokens. Contiguous: it gets no pages.
  SequencePages fork(const SequencePages& parent, int64_t computed);

  KvUsage usage(int64_t group) const;
  int64_t free_pages(int64_t group) const { return groups_[static_cast<size_t>(group)].pool.free_pages(); }
  // Pages of a match that exactly so many tables hold; those that none holds are on the free list of the group.
  int64_t matched_pages(const SequencePages& pages, const PrefixMatch& match, int64_t group, int32_t references) const;
  // Leading pages of a global group that others hold too. They share a prefix, so no page after the first own one is.
  int64_t shared_pages(const SequencePages& pages, int64_t group) const;

  // For tests: the first broken rule, given the tables of all living sequences.
  Status check(std::span<const SequencePages* const> living) const;
  const PagePool& pool(int64_t group) const { return groups_[static_cast<size_t>(group)].pool; }
  const PrefixIndex& index(int64_t group) const { return groups_[static_cast<size_t>(group)].index; }

 private:
  struct Group {
    KvGroupConfig config;
    PagePool pool;
    PrefixIndex index;
  };

  explicit KvCache(KvCacheConfig config);

  int64_t page_at(int64_t position) const { return position >> page_shift_; }
  int64_t slot_at(int64_t position) const { return position & (config_.page_tokens - 1); }

  int64_t first_live_page(const Group& group, int64_t computed) const;
  int64_t window_pages(const Group& group) const;
  bool needs_copy(const Group& group, const SequencePages::Group& pages, int64_t computed) const;
  PageId take(Group& group);
  void drop(Group& group, PageId page);
  void extend_hashes(SequencePages& pages, std::span<const int32_t> tokens, int64_t count) const;
  PageId find(const Group& group, const SequencePages& pages, std::span<const int32_t> tokens, int64_t page) const;
  void trim(Group& group, SequencePages::Group& pages, int64_t computed);
  void publish(SequencePages& pages, std::span<const int32_t> tokens, int64_t computed);
  std::span<const int32_t> page_of(std::span<const int32_t> tokens, int64_t page) const;
  const Hash128& parent_hash(const SequencePages& pages, int64_t page) const;

  KvCacheConfig config_;
  int page_shift_;
  std::vector<Group> groups_;
};

}  // namespace quire
