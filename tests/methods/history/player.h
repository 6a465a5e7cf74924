#pragma once

#include <string>

#include "scalecom/comm/communicator.h"
#include "tests/methods/history/history.h"

namespace scalecom::methods::testing {

/// Plays a history with a method over the ranks of a world, of which restores take more or fewer,
/// and checks the books after every action: Lost, at every rank alike, where they do not balance.
/// `folder` is the same at every rank. Every rank calls it.
void play(const std::string& spec, const History& history, const std::string& folder,
          comm::Communicator& world);

}  // namespace scalecom::methods::testing
