#include "scalecom/methods/dgc/options.h"

#include <cmath>
#include <limits>

namespace scalecom::methods::dgc {
namespace {

// A momentum of 1 would never forget.
constexpr double kMostMomentum = 0.9999;
constexpr std::int64_t kWarmupStages = 4;

}  // namespace

core::OptionTable Options::table() {
  using Bound = core::OptionTable::Bound;
  core::OptionTable table(kName);
  declare(table);
  table.number("momentum", &momentum, 0, Bound::kClosed, kMostMomentum);
  table.choice("nesterov", &nesterov, {"off", "on"});
  table.number("clip", &clip, 0, Bound::kClosed, 1e9);
  table.integer("warmup", &warmup, 0, std::int64_t{1} << 40);
  return table;
}

double Options::most_rate(std::int64_t step) const {
  if (step >= warmup) return std::numeric_limits<double>::infinity();
  const std::int64_t stage = step * kWarmupStages / warmup;
  return std::pow(4.0, static_cast<double>(stage + 1));
}

float Options::clipping(double sum_of_squares, int ranks) const {
  const double most = clip / std::sqrt(static_cast<double>(ranks));
  const double norm = std::sqrt(sum_of_squares);
  // A norm that is not finite clips nothing: the entry that made it so is refused by itself.
  return clip > 0 && norm > most && std::isfinite(norm) ? static_cast<float>(most / norm) : 1.0F;
}

}  // namespace scalecom::methods::dgc
