#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "comparison/operations/counting.h"

namespace comparison::operations {

/// An entry that may be sent.
struct Candidate {
  Number size;  ///< its absolute value
  std::size_t at = 0;
};

/// Leaves the `keep` largest, by a quickselect; among equals, those that come first.
inline void keep_largest(std::vector<Candidate>& among, std::int64_t keep) {
  const auto larger = [](const Candidate& a, const Candidate& b) {
    if (a.size > b.size) return true;
    return !(b.size > a.size) && a.at < b.at;
  };
  std::nth_element(among.begin(), among.begin() + keep - 1, among.end(), larger);
  among.resize(static_cast<std::size_t>(keep));
}

}  // namespace comparison::operations
