#pragma once

#include <string>
#include <vector>

#include "scalecom/plan/outlook.h"

namespace cli {

/// One figure of a plan that takes several values: "workers=8..1024", each time twice as many;
/// "bandwidth=1Gbit/s..100Gbit/s"; "batch=8,16,32".
class Sweep {
 public:
  /// core::UsageError for another figure, or values that cannot be.
  explicit Sweep(const std::string& text);

  /// "workers", "bandwidth" or "batch".
  const std::string& figure() const { return figure_; }
  const std::vector<double>& values() const { return values_; }
  /// A value as people read it.
  std::string label(double value) const;
  void apply(double value, scalecom::plan::Setting& setting) const;

 private:
  std::string figure_;
  std::vector<double> values_;
};

}  // namespace cli
