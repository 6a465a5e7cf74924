#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/interface_counters.h"
#include "scalecom/comm/communicator.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"

namespace bench {

/// Whole reductions over the ranks that there are, and the same work by a rank alone.
struct ReducePlan {
  std::int64_t elements = 25'000'000;
  std::vector<std::string> methods;
  int repeats = 5;
  /// A network device whose own counters are read around the repeats; empty for none.
  std::string interface;
};

/// Means over the ranks, by the GPU's own clock where the stream is one's.
struct ReduceFigures {
  std::string method;
  double reduce_ms = 0;  ///< the median over runs of as many repeats as there are ranks
  /// In a world of one, at every rank at the same time: what the host's cores, or the GPU, take for
  /// all ranks that they serve.
  double alone_ms = 0;
  /// Of this rank in all repeats together: as it counted, as the method says, and as its network
  /// device did.
  scalecom::comm::Traffic moved;
  scalecom::comm::Traffic formula;
  InterfaceCounters wire;
};

/// The gradient that is reduced: matrices of 1000 x 1000, and a row of what is left.
std::vector<scalecom::layout::Tensor> reduced_tensors(std::int64_t elements);

/// Every rank calls it. Steps follow one another without a pause but for a new gradient, whose time
/// is taken off, and which lies on the stream's device. UsageError for a plan that cannot be run.
std::vector<ReduceFigures> measure_reduce(const ReducePlan& plan,
                                          scalecom::comm::Communicator& world,
                                          const scalecom::core::Stream& stream,
                                          const std::function<void(int done, int all)>& progress);

}  // namespace bench
