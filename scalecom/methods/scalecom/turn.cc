#include "scalecom/methods/scalecom/turn.h"

#include <algorithm>

namespace scalecom::methods::scalecom {
namespace {

ChunkRange share_of(const Shape& shape, int size, int number) {
  const comm::Share share = comm::share(shape.chunks, size, number);
  return {share.begin, share.end};
}

}  // namespace

ChunkRange led_chunks(const Shape& shape, const Options& options, const Turn& turn) {
  if (!options.sends_offsets()) return {};
  if (options.leaders == Options::kCyclic) return turn.leads() ? shape.whole() : ChunkRange{};
  return share_of(shape, turn.size, static_cast<int>((turn.rank + turn.step) % turn.size));
}

std::int64_t slot_bytes(const Shape& shape, int size) {
  std::int64_t longest = 0;
  for (int number = 0; number < size; ++number) {
    longest = std::max(longest, shape.offset_bytes(share_of(shape, size, number)));
  }
  return longest;
}

comm::Counters offset_cost(const Shape& shape, const Options& options, const Turn& turn) {
  comm::Counters cost;
  if (options.leaders == Options::kSharded) {
    const std::int64_t slot = slot_bytes(shape, turn.size);
    cost[comm::Call::kAllGather] = comm::all_gather_traffic(slot, slot * turn.size, turn.size);
  } else {
    cost[comm::Call::kBroadcast] =
        comm::broadcast_traffic(shape.offset_bytes(), turn.size, turn.rank, turn.leader());
  }
  return cost;
}

}  // namespace scalecom::methods::scalecom
