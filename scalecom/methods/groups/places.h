#pragma once

#include <vector>

#include "scalecom/comm/communicator.h"

namespace scalecom::methods::groups {

/// Which group each rank is in, and its place there.
struct Places {
  std::vector<int> group;
  std::vector<int> member;
  int groups = 0;
  int members = 0;  ///< of every group
};

/// Groups of `size` ranks in a row; core::UsageError where `world` is no multiple of it.
Places by_number(int world, int size);

/// A group a host. Every rank calls it; core::UsageError, at all of them, where hosts have
/// different numbers of ranks.
Places by_host(comm::Communicator& communicator);

}  // namespace scalecom::methods::groups
