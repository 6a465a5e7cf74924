#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "scalecom/core/device.h"
#include "scalecom/core/dtype.h"

namespace bench {

/// How often something is timed, at most: sums of repeats are ints.
constexpr int kMostRepeats = 1'000'000;

/// The local step of one rank at the public interface, next to what memory allows.
struct StepPlan {
  std::int64_t elements = 25'600'000;
  double rate = 100;
  double beta = 0.1;
  std::string select = "chunk";                                  ///< as scalecom's option
  scalecom::core::DType type = scalecom::core::DType::kFloat32;  ///< of the gradient
  scalecom::core::Device device;
  /// Of the CPU, which verifies what a GPU does; 0: as many as the pool takes by itself.
  int threads = 0;
  int repeats = 21;
};

/// Medians over the repeats, in which all kinds of pass take turns over the same arrays.
struct StepFigures {
  std::string engine;  ///< the instruction set, or the GPU's name
  int threads = 0;
  bool verified = false;    ///< results equal the scalar reference's, bit for bit
  double leader_ms = 0;     ///< reduce() of a rank that names the entries
  double follower_ms = 0;   ///< reduce() of a rank that is told them
  double plain_ms = 0;      ///< m += beta * g
  double copy_ms = 0;       ///< g to another array
  double floor_ms = 0;      ///< g and m to others: 16 bytes an element, 12 where g has 16 bits
  double leader_ratio = 0;  ///< to the plain pass, or to the floor on a GPU; the median of the
                            ///< ratios of each repeat
  double follower_ratio = 0;
  std::int64_t peak_bytes = 0;  ///< that a rank's method adds to what holds the gradient
};

/// Verifies, then times. `progress(done, all)` is called between repeats. UsageError for a plan
/// that cannot be run.
StepFigures measure_step(const StepPlan& plan,
                         const std::function<void(int done, int all)>& progress);

}  // namespace bench
