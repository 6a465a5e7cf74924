#include "comparison/growth.h"

#include <cmath>
#include <set>
#include <vector>

#include "scalecom/core/error.h"

namespace comparison {
namespace {

constexpr double kLeastRise = 0.05;      // of the fit at the fewest ranks
constexpr double kLeastExplained = 0.8;  // of the variance

/// A point of a shape f: y = a + b f(n).
struct Point {
  double f = 0;
  double y = 0;
};

struct Fit {
  double a = 0;
  double b = 0;
  double left = 0;    ///< squares that the fit leaves
  double around = 0;  ///< squares around the mean

  bool grows(double fewest, double most) const {
    const double rise = b * (most - fewest);
    return rise > 0 && rise >= kLeastRise * std::abs(a + b * fewest) &&
           left <= (1 - kLeastExplained) * around;
  }
};

Fit fit(const std::vector<Point>& points) {
  const auto count = static_cast<double>(points.size());
  double mean_f = 0;
  double mean_y = 0;
  for (const Point& point : points) {
    mean_f += point.f / count;
    mean_y += point.y / count;
  }
  double ff = 0;
  double fy = 0;
  Fit result;
  for (const Point& point : points) {
    ff += (point.f - mean_f) * (point.f - mean_f);
    fy += (point.f - mean_f) * (point.y - mean_y);
    result.around += (point.y - mean_y) * (point.y - mean_y);
  }
  result.b = fy / ff;
  result.a = mean_y - result.b * mean_f;
  for (const Point& point : points) {
    const double miss = point.y - result.a - result.b * point.f;
    result.left += miss * miss;
  }
  return result;
}

}  // namespace

const char* to_string(Growth growth) {
  switch (growth) {
    case Growth::kConstant:
      return "constant";
    case Growth::kLog:
      return "log n";
    case Growth::kLinear:
      return "n";
  }
  return "unknown growth";
}

Growth fit_growth(std::span<const Busiest> figures) {
  std::set<int> ranks;
  for (const Busiest& figure : figures) ranks.insert(figure.ranks);
  if (ranks.size() < 3 || *ranks.begin() < 2) {
    throw scalecom::core::UsageError(
        "[growth] three numbers of ranks are needed to see a growth, each of 2 or more");
  }
  std::vector<Point> by_log;
  std::vector<Point> by_n;
  for (const Busiest& figure : figures) {
    const double n = figure.ranks;
    const double y = figure.bytes / (2 * (n - 1) / n);
    by_log.push_back({std::log2(n), y});
    by_n.push_back({n, y});
  }
  const Fit log = fit(by_log);
  const Fit linear = fit(by_n);
  const double fewest = *ranks.begin();
  const double most = *ranks.rbegin();
  if (linear.left < log.left) {
    return linear.grows(fewest, most) ? Growth::kLinear : Growth::kConstant;
  }
  return log.grows(std::log2(fewest), std::log2(most)) ? Growth::kLog : Growth::kConstant;
}

}  // namespace comparison
