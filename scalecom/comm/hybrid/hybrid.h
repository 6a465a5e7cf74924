#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "scalecom/comm/collectives.h"
#include "scalecom/comm/link.h"

namespace scalecom::comm::hybrid {

/// A world of `size` ranks that are threads of the processes of MPI_COMM_WORLD: process p of P has
/// the ranks of share(size, P, p). Returns the ends of this process's own ranks, in order. Every
/// process calls it with the same size. MPI must be running.
std::vector<std::unique_ptr<Communicator>> make_world(
    int size, std::chrono::milliseconds deadline = kDefaultDeadline);

/// The same for threads of the processes of a link, which was opened for this size.
std::vector<std::unique_ptr<Communicator>> make_world(
    const std::shared_ptr<Link>& link, int size,
    std::chrono::milliseconds deadline = kDefaultDeadline);

}  // namespace scalecom::comm::hybrid
