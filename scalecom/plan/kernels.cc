#include "scalecom/plan/kernels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "scalecom/core/options.h"

namespace scalecom::plan {
namespace {

using Settings = std::map<std::string, std::string>;

Settings settings_of(const core::OptionString& options) {
  return {options.settings.begin(), options.settings.end()};
}

double rate_of(const Settings& settings) {
  const auto found = settings.find("rate");
  if (found == settings.end()) return 0;
  double rate = 0;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), rate);
  return rate;
}

// Whether a measurement with these options says something about a method with those.
bool speaks_of(const Settings& measured, const Settings& asked) {
  return std::all_of(measured.begin(), measured.end(), [&](const auto& setting) {
    if (setting.first == "rate") return true;
    const auto found = asked.find(setting.first);
    return found != asked.end() && found->second == setting.second;
  });
}

double distance(double measured_rate, double rate) {
  if (measured_rate <= 0 || rate <= 0) return 0;
  return std::abs(std::log(measured_rate / rate));
}

// Through points in the order of their elements.
double on_the_line(const std::vector<KernelTime>& points, double elements) {
  const KernelTime& last = points.back();
  if (points.size() == 1 || elements >= last.elements) {
    return last.seconds * elements / last.elements;
  }
  std::size_t after = 1;
  while (points[after].elements < elements) ++after;
  const KernelTime& a = points[after - 1];
  const KernelTime& b = points[after];
  const double slope = (b.seconds - a.seconds) / (b.elements - a.elements);
  const double seconds = a.seconds + slope * (elements - a.elements);
  // Below the smallest the line can fall to nothing, and work is never for nothing.
  return elements < a.elements ? std::max(seconds, a.seconds * elements / a.elements) : seconds;
}

}  // namespace

Kernels::Kernels(std::string device, std::string source, std::vector<KernelTime> times)
    : device_(std::move(device)), source_(std::move(source)), times_(std::move(times)) {
  std::stable_sort(times_.begin(), times_.end(), [](const KernelTime& a, const KernelTime& b) {
    return a.elements < b.elements;
  });
}

std::optional<double> Kernels::seconds(const std::string& spec, double elements) const {
  const core::OptionString asked = core::OptionString::parse(spec);
  if (asked.name == "dense" || elements <= 0) return 0;
  const Settings settings = settings_of(asked);
  const double rate = rate_of(settings);
  double nearest = 0;
  std::vector<KernelTime> points;
  for (const KernelTime& time : times_) {
    const core::OptionString measured = core::OptionString::parse(time.spec);
    const Settings own = settings_of(measured);
    if (measured.name != asked.name || !speaks_of(own, settings)) continue;
    const double away = distance(rate_of(own), rate);
    if (!points.empty() && away > nearest) continue;
    if (!points.empty() && away < nearest) points.clear();
    nearest = away;
    if (!points.empty() && points.back().elements == time.elements) continue;
    points.push_back(time);
  }
  if (points.empty()) return std::nullopt;
  return on_the_line(points, elements);
}

}  // namespace scalecom::plan
