#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "scalecom/comm/collectives.h"

namespace scalecom::comm::inproc {

/// The ends of a world of `size` ranks that are threads of this process; end r is for the thread
/// that is rank r. 1 to 128 ranks are tested.
///
/// Given CUDA streams, ranks take each other's arrays straight from the GPU that they share: all
/// streams of a call are of one device, and each rank has one of its own, for all calls unless the
/// caller puts several in order: a communicator's scratch is the same for all. The threads still
/// meet, for every call, but none waits for the device. A world of one can be captured into a
/// graph.
std::vector<std::unique_ptr<Fabric>> make_fabrics(int size);
std::vector<std::unique_ptr<Communicator>> make_world(
    int size, std::chrono::milliseconds deadline = kDefaultDeadline);

/// Runs `body` as `size` ranks, one thread each, and returns when all have ended. Where ranks
/// throw, the error of the lowest rank whose error is not merely about its peers is thrown again.
void run(int size, const std::function<void(Communicator&)>& body,
         std::chrono::milliseconds deadline = kDefaultDeadline);

/// The same for ends that are there already: all of a world, or those of this process's ranks.
void run_ends(std::vector<std::unique_ptr<Communicator>> ends,
              const std::function<void(Communicator&)>& body);

}  // namespace scalecom::comm::inproc
