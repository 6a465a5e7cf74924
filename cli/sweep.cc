#include "cli/sweep.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/plan/units.h"

namespace cli {
namespace {

namespace core = scalecom::core;
namespace plan = scalecom::plan;

constexpr const char* kForms =
    "write workers=8..1024, bandwidth=1Gbit/s..100Gbit/s or batch=8,16,32";
constexpr double kLargestWhole = 1e9;
constexpr std::size_t kMostValues = 1000;

double whole_number(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(value >= 1) || value > kLargestWhole ||
      value != std::floor(value)) {
    throw core::UsageError(core::concat("[plan] --sweep has '", text,
                                        "', which is no whole number from 1 on; ", kForms));
  }
  return value;
}

}  // namespace

Sweep::Sweep(const std::string& text) {
  const std::size_t equals = text.find('=');
  figure_ = text.substr(0, equals);
  const bool known = figure_ == "workers" || figure_ == "bandwidth" || figure_ == "batch";
  if (equals == std::string::npos || !known) {
    throw core::UsageError(core::concat("[plan] --sweep ", text, " names no figure; ", kForms));
  }
  const auto read = [&](const std::string& value) {
    return figure_ == "bandwidth" ? plan::parse_bandwidth(value, "--sweep bandwidth")
                                  : whole_number(value);
  };
  const std::string range = text.substr(equals + 1);
  const std::size_t dots = range.find("..");
  if (dots == std::string::npos) {
    for (const std::string& piece : core::split(range, ',')) values_.push_back(read(piece));
  } else {
    const double first = read(range.substr(0, dots));
    const double last = read(range.substr(dots + 2));
    if (first > last) {
      throw core::UsageError(
          core::concat("[plan] --sweep ", text, " goes down; write the smaller figure first"));
    }
    values_.push_back(first);
    while (2 * values_.back() < last) values_.push_back(2 * values_.back());
    if (first < last) values_.push_back(last);
  }
  if (values_.size() > kMostValues) {
    throw core::UsageError(core::concat("[plan] --sweep has over ", kMostValues, " values"));
  }
}

std::string Sweep::label(double value) const {
  if (figure_ != "bandwidth") return fmt::format("{:.0f}", value);
  return plan::byte_rate_text(value);
}

void Sweep::apply(double value, plan::Setting& setting) const {
  if (figure_ == "workers") setting.network.workers = static_cast<int>(value);
  if (figure_ == "bandwidth") {
    setting.network.between = setting.network.between.with_bandwidth(value);
  }
  if (figure_ == "batch") setting.batch = static_cast<std::int64_t>(value);
}

}  // namespace cli
