#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "scalecom/core/hash.h"
#include "scalecom/layout/layout.h"

namespace scalecom::methods {

/// A method's buckets, from step to step: each is made when its layout is new, apart for steps of
/// the warm-up, and goes when a step has not used it. A copy of it shares the buckets.
template <typename Bucket>
class Buckets {
 public:
  /// The bucket of a layout, which `step` uses. `make()` makes one where there is none.
  template <typename Make>
  Bucket& get(const layout::Layout& layout, bool warming_up, std::int64_t step, const Make& make) {
    const std::uint64_t key = key_of(layout, warming_up);
    auto found = entries_.find(key);
    if (found == entries_.end()) found = entries_.emplace(key, Entry{make(), step}).first;
    found->second.used = step;
    return *found->second.bucket;
  }
  /// The same, or null where there is none.
  Bucket* find(const layout::Layout& layout, bool warming_up = false) const {
    const auto found = entries_.find(key_of(layout, warming_up));
    return found != entries_.end() ? found->second.bucket.get() : nullptr;
  }
  template <typename Visit>
  void for_each(const Visit& visit) {
    for (auto& [key, entry] : entries_) visit(*entry.bucket);
  }

  /// Those that the last step did not use belong to an older layout.
  void begin_step(std::int64_t step) {
    std::erase_if(entries_, [step](const auto& item) { return item.second.used < step - 1; });
  }
  /// After captured steps were replayed, which used what the last of the others had: `steps` are
  /// done.
  void replayed(std::int64_t steps) {
    std::int64_t newest = -1;
    for (const auto& [key, entry] : entries_) newest = std::max(newest, entry.used);
    for (auto& [key, entry] : entries_) {
      if (entry.used == newest) entry.used = steps - 1;
    }
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::shared_ptr<Bucket> bucket;
    std::int64_t used;  // the last step that did
  };

  static std::uint64_t key_of(const layout::Layout& layout, bool warming_up) {
    return core::combine(layout.fingerprint(), warming_up ? 1 : 0);
  }

  std::map<std::uint64_t, Entry> entries_;
};

}  // namespace scalecom::methods
