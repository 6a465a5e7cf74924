#pragma once

#include <optional>
#include <string>
#include <vector>

namespace scalecom::plan {

/// What a method's own work on one bucket takes, as it was measured: nothing here is an estimate.
struct KernelTime {
  /// The method, and the options that the measurement depends on: "scalecom,rate=100,select=chunk".
  std::string spec;
  double elements = 0;
  double seconds = 0;
};

/// The measurements of one device.
class Kernels {
 public:
  Kernels(std::string device, std::string source, std::vector<KernelTime> times);

  const std::string& device() const { return device_; }
  const std::string& source() const { return source_; }

  /// Seconds for a bucket of so many elements: between two sizes that were measured on a line
  /// through them, beyond the largest in proportion, and below the smallest on the line through the
  /// first two, but no less than in proportion. `spec` is a method's own, with all its options
  /// (Method::spec()); measurements whose options, but for the rate, are other ones do not count,
  /// and of the rest those of the nearest rate do. Nothing where there is none, but for dense,
  /// which has no work of its own.
  std::optional<double> seconds(const std::string& spec, double elements) const;

 private:
  std::string device_;
  std::string source_;
  std::vector<KernelTime> times_;  // by elements
};

/// Measurements that come with the library: "h200", "epyc". UsageError for another name.
std::vector<std::string> stored_kernels();
Kernels stored_kernels_of(const std::string& name);

}  // namespace scalecom::plan
