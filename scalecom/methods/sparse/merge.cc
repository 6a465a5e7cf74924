#include "scalecom/methods/sparse/merge.h"

#include <algorithm>

#include "scalecom/kernels/largest.h"

namespace scalecom::methods::sparse {
namespace {

// Both sets of one part as one, ascending, with the sum where they meet.
void add_up(const kernels::Given& a, const kernels::Given& b, std::vector<std::uint32_t>& positions,
            std::vector<float>& sums) {
  std::int64_t i = 0;
  std::int64_t j = 0;
  positions.clear();
  sums.clear();
  while (i < a.count || j < b.count) {
    const bool from_a = j == b.count || (i < a.count && a.positions[i] <= b.positions[j]);
    const bool from_b = i == a.count || (j < b.count && b.positions[j] <= a.positions[i]);
    positions.push_back(from_a ? a.positions[i] : b.positions[j]);
    if (from_a && from_b) {
      sums.push_back(a.values[i] + b.values[j]);
    } else {
      sums.push_back(from_a ? a.values[i] : b.values[j]);
    }
    i += from_a ? 1 : 0;
    j += from_b ? 1 : 0;
  }
}

void append(Items& items, std::uint32_t position, float value) {
  items.positions.push_back(position);
  items.values.push_back(value);
}

}  // namespace

Merged merge(const Items& a, const Items& b) {
  Merged merged;
  std::vector<std::uint32_t> positions;
  std::vector<float> sums;
  const std::vector<kernels::Given> of_a = a.by_part();
  const std::vector<kernels::Given> of_b = b.by_part();
  for (std::size_t part = 0; part < a.runs.size(); ++part) {
    add_up(of_a[part], of_b[part], positions, sums);
    const wire::Run& run = a.runs[part];
    const auto total = static_cast<std::int64_t>(sums.size());
    std::vector<std::uint32_t> kept(static_cast<std::size_t>(run.count));
    kernels::select_largest(sums.data(), total, run.count, kept.data());
    auto next = kept.begin();
    for (std::uint32_t i = 0; i < sums.size(); ++i) {
      const bool keeps = next != kept.end() && *next == i;
      if (keeps) ++next;
      append(keeps ? merged.kept : merged.dropped, positions[i], sums[i]);
    }
    merged.kept.runs.push_back(run);
    merged.dropped.runs.push_back({run.length, total - run.count});
  }
  return merged;
}

}  // namespace scalecom::methods::sparse
