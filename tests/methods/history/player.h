#pragma once

#include <string>

#include "scalecom/comm/communicator.h"
#include "tests/methods/history/history.h"

namespace scalecom::methods::testing {

/// What a fault takes: one rank in the middle of a step, or, where those of another process cannot
/// go on without it, all of them at once after a step.
enum class Toll : std::uint8_t { kRank, kJob };

/// Plays a history with a method over the ranks of a world, of which restores take more or fewer,
/// and checks the books after every action: Lost, at every rank alike, where they do not balance.
/// `folder` is the same at every rank. Every rank calls it. Returns how many faults made the ranks
/// start again: one that was to come after a step's last call does not.
int play(const std::string& spec, const History& history, Toll toll, const std::string& folder,
         comm::Communicator& world);

}  // namespace scalecom::methods::testing
