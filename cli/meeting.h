#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "train/loop/processes.h"

namespace cli {

/// Of a command whose processes wait for one another, where --deadline says nothing else.
constexpr double kDeadlineSeconds = 300;

/// What --deadline says; core::UsageError where that is out of range.
std::chrono::milliseconds deadline_of(double seconds);

/// The processes of mpirun or torchrun, all of which have to arrive before the deadline: MPI's own
/// beginning would wait for ever. Past it the program says so, as `command` ("scalecom train"), and
/// ends with status 1, or this throws core::PeerError, where the engine knows more.
std::unique_ptr<train::loop::Processes> meet(const std::string& command,
                                             std::chrono::milliseconds deadline);

}  // namespace cli
