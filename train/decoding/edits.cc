#include "train/decoding/edits.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace train::decoding {

std::int64_t edits(std::span<const int> reference, std::span<const int> hypothesis) {
  // Row by row of the table of all prefixes.
  std::vector<std::int64_t> row(hypothesis.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t r = 0; r < reference.size(); ++r) {
    std::int64_t diagonal = row[0]++;
    for (std::size_t h = 0; h < hypothesis.size(); ++h) {
      const std::int64_t replaced = diagonal + (reference[r] == hypothesis[h] ? 0 : 1);
      diagonal = row[h + 1];
      row[h + 1] = std::min({replaced, row[h] + 1, row[h + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace train::decoding
