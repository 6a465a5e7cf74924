#pragma once

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "scalecom/comm/link.h"

namespace scalecom::torch {

/// Process `process` of `processes`, over a gloo process group of torch that is this link's own,
/// for a world of `ranks` ranks divided among the processes. They find each other by the store,
/// where nobody else uses the same keys; every process calls it. PeerError where not all have come
/// before the deadline.
///
/// Only messages travel by gloo: sums are taken by our own collectives, in rank order. A peer whose
/// process ends is missed at once. Ranks that meet in different calls, or with messages of
/// different sizes, fail at the deadline at the latest, but are not told what the other one does.
std::shared_ptr<comm::Link> open_gloo_link(const c10::intrusive_ptr<c10d::Store>& store,
                                           int process, int processes, int ranks,
                                           std::chrono::milliseconds deadline);

}  // namespace scalecom::torch
