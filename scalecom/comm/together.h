#pragma once

#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "scalecom/comm/communicator.h"

namespace scalecom::comm {

/// Everybody's value, in the order of ranks.
template <typename T>
std::vector<T> gather(Communicator& communicator, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)),
                          std::as_writable_bytes(std::span(all)));
  return all;
}

/// The mean of everybody's value, the same at every rank.
double mean_over_ranks(Communicator& communicator, double mine);

/// Runs `body` at every rank and returns when it has worked at all of them. Where it failed
/// anywhere, every rank throws the same: the error of the lowest rank that has one, by its own
/// type. A core::PeerError of `body` is thrown as it is, at once: who has lost a peer cannot tell
/// it.
void together(Communicator& communicator, const std::function<void()>& body);

}  // namespace scalecom::comm
