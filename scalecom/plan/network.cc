#include "scalecom/plan/network.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "scalecom/comm/fabric.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::plan {
namespace {

using comm::Call;

double busiest_way(const comm::Traffic& traffic) {
  return static_cast<double>(std::max(traffic.sent, traffic.received));
}

// comm/'s own engines sum long arrays in pieces.
double pieces(Call call, double bytes, Algorithm algorithm) {
  if (algorithm != Algorithm::kDirect) return 1;
  if (call == Call::kAllReduce) bytes /= 2;
  if (call != Call::kAllReduce && call != Call::kReduceScatter) return 1;
  return std::max(1.0, std::ceil(bytes / static_cast<double>(comm::kScratchBytes)));
}

// One of two ranks adds up a single number alone. The other's is under way with what it sends in
// the all-gather of the step before, and has come when the step begins.
bool number_comes_early(const comm::Counters& counters, Algorithm algorithm, int ranks) {
  const comm::Traffic& number = counters[Call::kAllReduce];
  return algorithm == Algorithm::kDirect && ranks == 2 && number.calls == 1 &&
         busiest_way(number) <= sizeof(float) && counters[Call::kAllGather].calls > 0;
}

// Calls of `ranks` ranks one after the other; `crossing` is how much of a rank's bytes each byte
// of the link's bandwidth has to serve.
double seconds(const comm::Counters& counters, const Link& link, Algorithm algorithm, int ranks,
               double crossing) {
  double sum = 0;
  for (int i = 0; i < comm::kCalls; ++i) {
    const auto call = static_cast<Call>(i);
    const comm::Traffic& traffic = counters[call];
    if (traffic.calls == 0) continue;
    const auto calls = static_cast<double>(traffic.calls);
    const double waits = calls * hops(call, algorithm, ranks) *
                         pieces(call, busiest_way(traffic) / calls, algorithm);
    if (waits == 0) continue;
    sum += waits * link.hop_seconds(crossing * busiest_way(traffic) / waits);
  }
  if (number_comes_early(counters, algorithm, ranks)) sum -= link.hop_seconds(0);
  return sum;
}

}  // namespace

double Link::hop_seconds(double sent_bytes) const {
  if (timed.empty()) return latency + sent_bytes / bandwidth;
  const auto after =
      std::upper_bound(timed.begin(), timed.end(), sent_bytes,
                       [](double bytes, const HopTime& hop) { return bytes < hop.sent_bytes; });
  if (after == timed.begin()) return timed.front().seconds;
  const HopTime& before = *std::prev(after);
  const double more = sent_bytes - before.sent_bytes;
  if (after == timed.end()) return before.seconds + more / bandwidth;
  const double share = more / (after->sent_bytes - before.sent_bytes);
  return before.seconds + share * (after->seconds - before.seconds);
}

Link Link::with_bandwidth(double other) const {
  Link link{other, latency, timed};
  for (HopTime& hop : link.timed) {
    const double beyond = std::max(0.0, hop.seconds - latency);
    hop.seconds += beyond * (bandwidth / other - 1);
  }
  return link;
}

const char* to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kTree:
      return "tree";
  }
  return "unknown algorithm";
}

Algorithm parse_algorithm(const std::string& name) {
  for (const Algorithm one : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
    if (name == to_string(one)) return one;
  }
  throw core::UsageError(
      core::concat("[plan] no collective '", name, "'; allowed: direct, ring, tree"));
}

int hops(Call call, Algorithm algorithm, int ranks) {
  if (ranks < 2) return 0;
  if (call == Call::kSendReceive || call == Call::kAllToAll) return 1;
  const bool there_and_back = call == Call::kAllReduce || call == Call::kBroadcast;
  switch (algorithm) {
    case Algorithm::kDirect:
      // To one other rank alone, both parts of a broadcast go straight.
      if (call == Call::kBroadcast && ranks == 2) return 1;
      return there_and_back ? 2 : 1;
    case Algorithm::kRing:
      return (call == Call::kAllReduce ? 2 : 1) * (ranks - 1);
    case Algorithm::kTree: {
      const auto depth = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
      return (call == Call::kAllReduce ? 2 : 1) * depth;
    }
  }
  return 0;
}

// With all to all, each member sends its own to those of all other nodes. A ring or a tree enters
// and leaves a node once.
double share_between(const Network& network) {
  if (network.nodes() == 1) return 0;
  const auto workers = static_cast<double>(network.workers);
  return network.algorithm == Algorithm::kDirect ? (workers - network.per_node) / (workers - 1)
                                                 : 1.0 / network.per_node;
}

WireTime wire_time(const methods::LevelTraffic& levels, bool grouped, const Network& network) {
  const int members = network.per_node;
  const auto take = [&](const comm::Counters& counters, const Link& link, int ranks,
                        double crossing) {
    return seconds(counters, link, network.algorithm, ranks, crossing);
  };
  if (grouped) {
    comm::Counters gather;
    gather[Call::kReduceScatter] = levels.inside[Call::kReduceScatter];
    // All members of a node have their turn between nodes at once.
    return {take(gather, network.inside, members, 1),
            take(levels.between, network.between, network.nodes(), members),
            take(levels.inside - gather, network.inside, members, 1)};
  }
  if (members == 1) return {0, take(levels.between, network.between, network.workers, 1), 0};
  if (network.nodes() == 1) return {0, take(levels.between, network.inside, members, 1), 0};
  const double outside = share_between(network);
  // In a ring or a tree all of a worker's bytes may be for its own node.
  const double inside = network.algorithm == Algorithm::kDirect ? 1 - outside : 1;
  // Both kinds of wire at the same time: what is shorter is hidden.
  return {0,
          std::max(take(levels.between, network.between, network.workers, members * outside),
                   take(levels.between, network.inside, network.workers, inside)),
          0};
}

}  // namespace scalecom::plan
