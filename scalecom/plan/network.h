#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/comm/traffic.h"
#include "scalecom/methods/method.h"

namespace scalecom::plan {

/// One hop of a collective as it was timed.
struct HopTime {
  double sent_bytes = 0;  ///< by a rank, to all others
  double seconds = 0;
};

/// What a hop of a collective takes: latency + bytes / bandwidth.
struct Link {
  double bandwidth = 0;  ///< bytes a second, each way
  double latency = 0;    ///< seconds, one way
  /// Hops that were timed, the shortest first. Real links are no straight lines: engines ask before
  /// they send a long message, and buffers take a short one at once. Where there are any, a hop
  /// takes what lies between the two that are next to it, and beyond the last the bandwidth counts.
  std::vector<HopTime> timed = {};

  double hop_seconds(double sent_bytes) const;
  /// The same link if it were faster or slower: what a hop takes beyond the latency goes with it.
  Link with_bandwidth(double other) const;
};

/// How an engine carries out a collective: every rank sends to every other at once, as comm/'s own
/// engines do; to its neighbour in a ring; or along a tree, as NCCL does where there are many
/// ranks. The bytes of a rank are the same, those of the method's formula. The hops are not.
enum class Algorithm : std::uint8_t { kDirect, kRing, kTree };

const char* to_string(Algorithm algorithm);
/// UsageError for another name.
Algorithm parse_algorithm(const std::string& name);

/// Hops of one call, each behind the other, that cost a latency.
int hops(comm::Call call, Algorithm algorithm, int ranks);

/// The workers and the wires between them.
struct Network {
  int workers = 1;
  /// Workers of a node, which share the node's link to the others. 1: every worker is a node.
  int per_node = 1;
  Link between;  ///< of a node
  Link inside;   ///< of a worker, to others of its node
  Algorithm algorithm = Algorithm::kDirect;

  int nodes() const { return workers / per_node; }
};

/// Of what workers send whose method has no groups, the share that leaves their node, in the mean.
double share_between(const Network& network);

/// Seconds that a bucket's calls take where nothing else is on the wires: inside the node, where
/// groups take their mean first; between nodes; inside again. All that has no groups is `between`.
struct WireTime {
  double gather = 0;
  double between = 0;
  double spread = 0;
};

/// `levels` is what the busiest worker moves. A method with groups (`grouped`) moves what it says
/// inside nodes and between them; the traffic of any other goes over both, as the ranks lie.
WireTime wire_time(const methods::LevelTraffic& levels, bool grouped, const Network& network);

}  // namespace scalecom::plan
