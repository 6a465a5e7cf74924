#include "bench/median.h"

#include <algorithm>
#include <numeric>

namespace bench {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_of_runs(const std::vector<double>& values, int length) {
  const auto run = std::min<std::ptrdiff_t>(length, std::ssize(values));
  std::vector<double> means;
  for (auto begin = values.begin(); values.end() - begin >= run; ++begin) {
    means.push_back(std::accumulate(begin, begin + run, 0.0) / static_cast<double>(run));
  }
  return median(std::move(means));
}

}  // namespace bench
