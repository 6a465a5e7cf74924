#pragma once

#include <cstddef>
#include <vector>

namespace scalecom::plan {

/// What a bucket's reduction keeps busy, one after the other, in seconds: the wires inside the
/// node, where its workers first take their mean; the device, which compresses; the wires between
/// nodes; and those inside again.
struct BucketTimes {
  std::size_t ready_after = 0;  ///< number of the backward part whose end makes it ready
  double gather = 0;
  double compress = 0;
  double between = 0;
  double spread = 0;
};

/// A worker's step, in seconds. The device computes the parts of the backward pass in order and
/// compresses; a bucket that is ready goes before the next part. Each kind of wire carries one
/// bucket at a time, in the order in which they come.
struct StepParts {
  double forward = 0;
  std::vector<double> backward;
  std::vector<BucketTimes> buckets;  ///< in the order in which they become ready
  double other = 0;                  ///< after all: the optimizer
  bool overlaps = true;              ///< else nothing runs beside anything else
};

struct StepTime {
  double step = 0;
  double compute = 0;
  double compress = 0;
  double comm = 0;     ///< on wires of either kind, hidden or not
  double exposed = 0;  ///< of the step, when the device has nothing to do but wait for wires
};

StepTime schedule(const StepParts& parts);

}  // namespace scalecom::plan
