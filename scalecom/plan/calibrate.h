#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/plan/network.h"

namespace scalecom::plan {

/// The link of these times: its latency is that of hops of some kilobytes at most, and its
/// bandwidth follows from those that take over four times as long, or, where there are none, from
/// all of them. It keeps the times: those that cost what a ping costs as one, and none under that
/// of a shorter hop. UsageError for fewer than three times, or times that do not grow with the
/// bytes.
Link fit_link(std::span<const HopTime> times);

/// Messages from a byte up to where a rank sends 12 MiB to all the others together.
std::vector<std::int64_t> hop_sizes(int ranks);

/// Times the ranks' exchange of messages of these sizes: every rank sends one to every other, as in
/// each hop of a collective, again and again until it takes no less. A message of a byte is a ping.
/// The sizes go up; those beyond one that takes long are left out. Every rank calls it and gets the
/// same; arrays lie on the stream's device. UsageError for a world of one.
std::vector<HopTime> measure_hops(comm::Communicator& ranks, std::span<const std::int64_t> sizes,
                                  const core::Stream& stream = {},
                                  const std::function<void(int done, int all)>& progress = {});

}  // namespace scalecom::plan
