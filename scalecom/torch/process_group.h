#pragma once

#include <chrono>
#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "scalecom/comm/communicator.h"

namespace scalecom::torch {

/// The ranks of a torch process group, of any backend: gloo for arrays in host memory, NCCL for
/// those of a GPU, or both in one group. Nobody else uses the group, so that every rank makes its
/// calls in the same order.
///
/// Sums are taken in the backend's own order. A lost peer is known as far as the backend knows it;
/// the deadline holds for every call that the host waits for. Traffic is counted by the formulas of
/// comm/traffic.h: what the backend really sends is its own business.
///
/// torch makes groups with torch.distributed.new_group(), so split() only finds them: `parts` are
/// those that it may be asked for. UsageError for another division.
struct GroupPart {
  std::vector<int> ranks;  ///< of this group, in the part's order
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};
std::unique_ptr<comm::Communicator> make_communicator(c10::intrusive_ptr<c10d::ProcessGroup> group,
                                                      std::chrono::milliseconds deadline,
                                                      std::vector<GroupPart> parts = {});

}  // namespace scalecom::torch
