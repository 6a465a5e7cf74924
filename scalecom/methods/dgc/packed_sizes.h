#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/wire/items.h"

namespace scalecom::methods::dgc {

/// How many entries each rank sends depends on the data: the ranks tell one another before they
/// send them.
class PackedSizes {
 public:
  /// The bytes that each rank gave in the last exchange.
  std::span<const std::int64_t> message_bytes() const { return bytes_; }

  /// What telling costs a rank, and then the messages.
  static comm::Traffic traffic(std::int64_t parts, std::span<const std::int64_t> message_bytes,
                               int rank);

 protected:
  /// Everybody's runs, this rank's being `mine`. PeerError where they cannot be true.
  std::vector<std::vector<wire::Run>> exchange_counts(comm::Communicator& communicator,
                                                      std::span<const wire::Run> mine);
  std::int64_t all_bytes() const;

 private:
  std::vector<std::int64_t> bytes_;
};

}  // namespace scalecom::methods::dgc
