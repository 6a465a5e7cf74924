#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace bench {

/// The local step of one rank at the public interface, next to what memory allows.
struct StepPlan {
  std::int64_t elements = 25'600'000;
  double rate = 100;
  double beta = 0.1;
  int threads = 0;  ///< 0: as many as the pool takes by itself
  int repeats = 21;
};

/// Medians over the repeats, in which all kinds of pass take turns over the same arrays.
struct StepFigures {
  std::string isa;
  int threads = 0;
  bool verified = false;    ///< results equal the scalar reference's, bit for bit
  double leader_ms = 0;     ///< reduce() of a rank that names the entries
  double follower_ms = 0;   ///< reduce() of a rank that is told them
  double plain_ms = 0;      ///< m += beta * g
  double copy_ms = 0;       ///< g to another array: 8 bytes an element
  double floor_ms = 0;      ///< g and m to others: 16 bytes an element
  double leader_ratio = 0;  ///< to the plain pass; the median of the ratios of each repeat
  double follower_ratio = 0;
  std::int64_t peak_bytes = 0;  ///< that a rank's method adds to a process that has the gradient
};

/// Verifies, then times. `progress(done, all)` is called between repeats. UsageError for a plan
/// that cannot be run.
StepFigures measure_step(const StepPlan& plan,
                         const std::function<void(int done, int all)>& progress);

}  // namespace bench
