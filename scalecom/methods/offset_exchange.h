#pragma once

#include <cstdint>

#include "scalecom/comm/communicator.h"
#include "scalecom/methods/bucket_shape.h"
#include "scalecom/methods/scalecom_bucket.h"
#include "scalecom/methods/scalecom_options.h"

namespace scalecom::methods {

/// Whose turn it is.
struct Turn {
  int rank = 0;
  int size = 1;
  std::int64_t step = 0;

  /// Of leaders=cyclic.
  int leader() const { return static_cast<int>(step % size); }
  bool leads() const { return rank == leader(); }
};

/// The chunks whose entries a rank names in a step: all or none of them with cyclic leaders, a
/// share that turns by one each step with sharded ones. None where no offsets travel, or where an
/// exact selection knows no chunks.
ChunkRange led_chunks(const BucketShape& shape, const ScaleComOptions& options, const Turn& turn);

/// Every rank's named entries to every rank: afterwards the bucket has all positions. PeerError
/// where what arrives cannot be offsets.
void exchange_offsets(ScaleComBucket& bucket, const ScaleComOptions& options,
                      comm::Communicator& communicator);

/// What that costs a rank.
comm::Counters offset_cost(const BucketShape& shape, const ScaleComOptions& options,
                           const Turn& turn);

}  // namespace scalecom::methods
