#pragma once

#include <chrono>
#include <memory>

#include "scalecom/comm/communicator.h"
#include "scalecom/comm/fabric.h"

namespace scalecom::comm {

constexpr std::chrono::milliseconds kDefaultDeadline = std::chrono::minutes(5);

/// The Communicator of every engine of our own: all calls as exchanges over its fabric.
std::unique_ptr<Communicator> make_communicator(
    std::unique_ptr<Fabric> fabric, std::chrono::milliseconds deadline = kDefaultDeadline);

}  // namespace scalecom::comm
