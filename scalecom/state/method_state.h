#pragma once

#include <cstdint>
#include <filesystem>

#include "scalecom/comm/communicator.h"
#include "scalecom/methods/method.h"
#include "scalecom/state/memories.h"

namespace scalecom::state {

/// Saves what a method remembers, a file a rank (memories.h), and returns when every rank's is on
/// the disk. Every rank calls it, with its own method and the same folder. Where one rank fails,
/// all throw. The folder may hold a save of any number of ranks: that stays as it was until the new
/// one is complete, and is then removed.
void save_method(const std::filesystem::path& folder, const methods::Method& method,
                 comm::Communicator& communicator);

/// Restores a method from such a folder, saved by this number of ranks or another; the next step is
/// the one after the last saved. Every rank calls it. The method must have been made from the
/// string that was saved, but for its groups: change options afterwards, by configure(), which
/// keeps what is still to be sent. Where one rank cannot load, every rank throws and no method has
/// changed.
void load_method(const std::filesystem::path& folder, methods::Method& method,
                 comm::Communicator& communicator);

/// The same of one rank alone, for callers that bring the ranks together themselves. `learner` is
/// method.learner() of the rank's communicator. An older save stays until the new one is complete
/// where `number`, the same at every rank, is larger than its own (state::RankMemories).
void save_method(const std::filesystem::path& folder, const methods::Method& method, int rank,
                 int world, const methods::Learner& learner, std::int64_t number = 0);
void load_method(const std::filesystem::path& folder, methods::Method& method,
                 const methods::Learner& learner);
/// What that would restore the method from, for callers that look at it first. UsageError where
/// another method saved it.
Loaded load_for(const methods::Method& method, const std::filesystem::path& folder,
                const methods::Learner& learner);

}  // namespace scalecom::state
