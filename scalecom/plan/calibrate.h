#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/plan/network.h"

namespace scalecom::plan {

/// One hop of a collective as it was timed.
struct HopTime {
  double message_bytes = 0;  ///< to each of the other ranks
  double sent_bytes = 0;     ///< by a rank, to all of them
  double seconds = 0;
};

/// The link of these times: its latency is that of messages of some kilobytes at most, and its
/// bandwidth follows from those that take over four times as long, or, where there are none, from
/// all of them. Where such long messages pay clearly more beside their bytes, they get a latency of
/// their own. UsageError for fewer than three times, or times that do not grow with the bytes.
Link fit_link(std::span<const HopTime> times);

/// Messages from a byte up to where a rank sends 12 MiB to all the others together.
std::vector<std::int64_t> hop_sizes(int ranks);

/// Times the ranks' exchange of messages of these sizes: every rank sends one to every other, as in
/// each hop of a collective. A message of a byte is a ping. The sizes go up, and end early where
/// one takes long. Every rank calls it and gets the same; arrays lie on the stream's device.
/// UsageError for a world of one.
std::vector<HopTime> measure_hops(comm::Communicator& ranks, std::span<const std::int64_t> sizes,
                                  const core::Stream& stream = {},
                                  const std::function<void(int done, int all)>& progress = {});

}  // namespace scalecom::plan
