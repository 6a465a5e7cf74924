#include "scalecom/methods/offset_exchange.h"

#include <algorithm>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::methods {
namespace {

using Part = BucketShape::Part;

[[noreturn]] void damaged(const std::string& whose) {
  throw core::PeerError(core::concat("[scalecom] the offsets ", whose, " are damaged"));
}

// A run of a piece's chunks whose offsets begin at a whole byte: work for one thread.
struct Run {
  const Part* part;
  std::int64_t first;
  std::int64_t last;
  std::int64_t begin;  // bytes
  std::int64_t size;
};

std::vector<Run> runs_of(const BucketShape& shape, const ChunkRange& range) {
  // A multiple of 8 chunks, so that any number of bits each makes whole bytes.
  constexpr std::int64_t kRunChunks = 8192;
  std::vector<Run> runs;
  shape.for_each_piece(range, [&](const Part& part, std::int64_t first, std::int64_t last,
                                  std::int64_t begin, std::int64_t /*size*/) {
    while (first < last) {
      const std::int64_t next = std::min(last, first + kRunChunks);
      const std::int64_t size = wire::packed_bytes(part.cut, first, next);
      runs.push_back({&part, first, next, begin, size});
      begin += size;
      first = next;
    }
  });
  return runs;
}

void pack(ScaleComBucket& bucket, const ChunkRange& led, std::span<std::byte> out) {
  const std::vector<Run> runs = runs_of(bucket.shape(), led);
  core::parallel_for(static_cast<std::int64_t>(runs.size()), [&](std::int64_t i) {
    const Run& run = runs[static_cast<std::size_t>(i)];
    wire::pack(
        run.part->cut, run.first, run.last, bucket.taken(run.part->first_item).positions,
        out.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.size)));
  });
}

void unpack(ScaleComBucket& bucket, const ChunkRange& led, std::span<const std::byte> in) {
  const std::vector<Run> runs = runs_of(bucket.shape(), led);
  core::parallel_for(static_cast<std::int64_t>(runs.size()), [&](std::int64_t i) {
    const Run& run = runs[static_cast<std::size_t>(i)];
    const auto bytes =
        in.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(run.size));
    if (!wire::unpack(run.part->cut, run.first, run.last, bytes,
                      bucket.taken(run.part->first_item).positions)) {
      damaged(core::concat("of '", run.part->name, "'"));
    }
  });
}

void broadcast(ScaleComBucket& bucket, const Turn& turn, comm::Communicator& communicator) {
  const BucketShape& shape = bucket.shape();
  const auto packed = bucket.packed(shape.offset_bytes());
  if (turn.leads()) pack(bucket, shape.whole(), packed);
  communicator.broadcast(packed, turn.leader());
  if (!turn.leads()) unpack(bucket, shape.whole(), packed);
}

// On the wire, a position of an exact selection counts from the first compressed slice on.
void broadcast_exact(ScaleComBucket& bucket, const Turn& turn, comm::Communicator& communicator) {
  const BucketShape& shape = bucket.shape();
  const auto packed = bucket.packed(shape.offset_bytes());
  std::uint32_t* positions = bucket.taken(0).positions;
  std::vector<std::uint32_t> absolute(static_cast<std::size_t>(shape.items));
  if (turn.leads()) {
    std::int64_t base = 0;
    for (std::size_t part = 0; part < shape.parts.size(); ++part) {
      const std::int64_t first = bucket.first_item(part);
      for (std::int64_t i = first; i < first + bucket.items(part); ++i) {
        absolute[static_cast<std::size_t>(i)] = positions[i] + static_cast<std::uint32_t>(base);
      }
      base += shape.parts[part].length;
    }
    wire::pack(shape.exact_cut(), 0, 1, absolute.data(), packed);
  }
  communicator.broadcast(packed, turn.leader());
  if (turn.leads()) return;
  if (!wire::unpack(shape.exact_cut(), 0, 1, packed, absolute.data())) damaged("of the bucket");
  std::vector<std::int64_t> counts;
  std::size_t item = 0;
  std::int64_t base = 0;
  for (const Part& part : shape.parts) {
    const std::size_t first = item;
    for (; item < absolute.size() && absolute[item] < base + part.length; ++item) {
      positions[item] = absolute[item] - static_cast<std::uint32_t>(base);
    }
    counts.push_back(static_cast<std::int64_t>(item - first));
    base += part.length;
  }
  bucket.set_items(counts);
}

std::vector<std::int64_t> bytes_by_rank(const BucketShape& shape, const ScaleComOptions& options,
                                        const Turn& turn) {
  std::vector<std::int64_t> bytes;
  for (int rank = 0; rank < turn.size; ++rank) {
    bytes.push_back(shape.offset_bytes(led_chunks(shape, options, {rank, turn.size, turn.step})));
  }
  return bytes;
}

void gather_shares(ScaleComBucket& bucket, const ScaleComOptions& options, const Turn& turn,
                   comm::Communicator& communicator) {
  const BucketShape& shape = bucket.shape();
  const std::vector<std::int64_t> bytes = bytes_by_rank(shape, options, turn);
  std::vector<std::size_t> begins{0};
  for (const std::int64_t size : bytes) {
    begins.push_back(begins.back() + static_cast<std::size_t>(size));
  }
  const auto packed = bucket.packed(static_cast<std::int64_t>(begins.back()));
  const auto part_of = [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return packed.subspan(begins[at], static_cast<std::size_t>(bytes[at]));
  };
  pack(bucket, led_chunks(shape, options, turn), part_of(turn.rank));
  communicator.all_gather(part_of(turn.rank), packed, bytes);
  for (int rank = 0; rank < turn.size; ++rank) {
    if (rank == turn.rank) continue;
    unpack(bucket, led_chunks(shape, options, {rank, turn.size, turn.step}), part_of(rank));
  }
}

}  // namespace

ChunkRange led_chunks(const BucketShape& shape, const ScaleComOptions& options, const Turn& turn) {
  if (!options.sends_offsets()) return {};
  if (options.leaders == ScaleComOptions::kCyclic) {
    return turn.leads() ? shape.whole() : ChunkRange{};
  }
  const comm::Share share =
      comm::share(shape.chunks, turn.size, static_cast<int>((turn.rank + turn.step) % turn.size));
  return {share.begin, share.end};
}

void exchange_offsets(ScaleComBucket& bucket, const ScaleComOptions& options,
                      comm::Communicator& communicator) {
  const Turn turn{communicator.rank(), communicator.size(), bucket.step()};
  if (options.leaders == ScaleComOptions::kSharded) {
    gather_shares(bucket, options, turn, communicator);
  } else if (bucket.shape().exact) {
    broadcast_exact(bucket, turn, communicator);
  } else {
    broadcast(bucket, turn, communicator);
  }
}

comm::Counters offset_cost(const BucketShape& shape, const ScaleComOptions& options,
                           const Turn& turn) {
  comm::Counters cost;
  if (options.leaders == ScaleComOptions::kSharded) {
    const std::int64_t mine = shape.offset_bytes(led_chunks(shape, options, turn));
    std::int64_t all = 0;
    for (const std::int64_t bytes : bytes_by_rank(shape, options, turn)) all += bytes;
    cost[comm::Call::kAllGather] = comm::all_gather_traffic(mine, all, turn.size);
  } else {
    cost[comm::Call::kBroadcast] =
        comm::broadcast_traffic(shape.offset_bytes(), turn.size, turn.rank, turn.leader());
  }
  return cost;
}

}  // namespace scalecom::methods
