#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "scalecom/comm/communicator.h"

namespace scalecom::comm::testing {

/// A world over gloo, of `size` ranks divided among the processes of mpirun: the ends of this
/// one's. They meet as torchrun's processes do.
std::vector<std::unique_ptr<Communicator>> make_gloo_world(int size,
                                                           std::chrono::milliseconds deadline);

}  // namespace scalecom::comm::testing
