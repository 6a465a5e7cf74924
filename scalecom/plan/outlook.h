#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scalecom/methods/method.h"
#include "scalecom/plan/buckets.h"
#include "scalecom/plan/kernels.h"
#include "scalecom/plan/model.h"
#include "scalecom/plan/network.h"
#include "scalecom/plan/schedule.h"

namespace scalecom::plan {

/// All that is known beforehand.
struct Setting {
  Model model;
  Network network;
  Kernels kernels;
  std::int64_t batch = 1;  ///< samples a worker and step
  /// Floating-point operations a second that a worker really reaches; of a model that was measured,
  /// or where a step was, not looked at.
  double flops = 0;
  /// A worker's measured step without any communication; 0 for none.
  double step_seconds = 0;
  double bucket_bytes = kBucketBytes;
  bool overlaps = true;
  double deviation = 0;  ///< of a worker's computing time: slowest_of()
};

/// UsageError for a setting that cannot be.
void check(const Setting& setting);

/// What a method would do to the step.
struct Outcome {
  std::string method;
  StepTime time;
  bool measured = true;  ///< whether what compression takes was; it counts as nothing where not
  methods::LevelTraffic moved;  ///< in a step, by the busiest worker
  double sent_between = 0;      ///< bytes of them that leave the node
  double effective_rate = 1;    ///< of dense over those; 1 where none do
  double speedup = 1;           ///< over dense
  /// Bytes a second between nodes below which it is faster than dense: infinity for always, 0 for
  /// none. A method of fewer hops and more bytes than dense has none, and can be faster all the
  /// same where the bandwidth is high.
  double pays_below = 0;
  std::string note;  ///< why the figures may be wrong; mostly empty
  std::string hint;  ///< what would make it send much less; mostly empty
};

/// The outcomes of the methods, in their order. Where workers share nodes, a method that can work
/// between groups does, unless its spec says groups=1. UsageError for a setting, a method or groups
/// that cannot be.
std::vector<Outcome> look_ahead(const Setting& setting, const std::vector<std::string>& methods);

/// One sentence: which method to use, if any.
std::string advise(const std::vector<Outcome>& outcomes);

}  // namespace scalecom::plan
