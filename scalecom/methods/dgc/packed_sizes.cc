#include "scalecom/methods/dgc/packed_sizes.h"

#include <numeric>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::methods::dgc {
namespace {

using Count = std::uint32_t;

}  // namespace

std::vector<std::vector<wire::Run>> PackedSizes::exchange_counts(comm::Communicator& communicator,
                                                                 std::span<const wire::Run> mine) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<Count> own;
  for (const wire::Run& run : mine) own.push_back(static_cast<Count>(run.count));
  std::vector<Count> counts(own.size() * ranks);
  communicator.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(counts)));
  std::vector<std::vector<wire::Run>> all(ranks, {mine.begin(), mine.end()});
  bytes_.clear();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      wire::Run& run = all[rank][i];
      run.count = counts[rank * mine.size() + i];
      if (run.count <= run.length) continue;
      throw core::PeerError(core::concat("[dgc] rank ", rank, " says it sends ", run.count,
                                         " entries of a tensor of ", run.length));
    }
    bytes_.push_back(wire::items_bytes(all[rank]));
  }
  return all;
}

std::int64_t PackedSizes::all_bytes() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), std::int64_t{0});
}

comm::Traffic PackedSizes::traffic(std::int64_t parts, std::span<const std::int64_t> message_bytes,
                                   int rank) {
  const auto size = static_cast<int>(message_bytes.size());
  const std::int64_t counts = parts * static_cast<std::int64_t>(sizeof(Count));
  const std::int64_t all =
      std::accumulate(message_bytes.begin(), message_bytes.end(), std::int64_t{0});
  return comm::all_gather_traffic(counts, counts * size, size) +
         comm::all_gather_traffic(message_bytes[static_cast<std::size_t>(rank)], all, size);
}

}  // namespace scalecom::methods::dgc
