#pragma once

#include <cstdint>

#include "scalecom/comm/traffic.h"
#include "scalecom/methods/scalecom/options.h"
#include "scalecom/methods/scalecom/shape.h"

namespace scalecom::methods::scalecom {

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
ChunkRange led_chunks(const Shape& shape, const Options& options, const Turn& turn);

/// Sharded leaders: the bytes that each of `size` ranks gives of the offsets. Those of the longest
/// share, whatever the step, so that a step that was captured can be replayed as any other.
std::int64_t slot_bytes(const Shape& shape, int size);

/// What the offsets' way to every rank costs a rank.
comm::Counters offset_cost(const Shape& shape, const Options& options, const Turn& turn);

}  // namespace scalecom::methods::scalecom
