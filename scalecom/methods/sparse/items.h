#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/buffer.h"
#include "scalecom/kernels/scatter.h"
#include "scalecom/methods/sparse/shape.h"
#include "scalecom/wire/items.h"

namespace scalecom::methods::sparse {

/// How many entries of each of a shape's parts a message has: `counts` in their order.
std::vector<wire::Run> runs_of(const Shape& shape, std::span<const std::int64_t> counts);

/// Entries of a bucket's compressed slices, part after part, in host memory.
struct Items {
  std::vector<wire::Run> runs;  ///< of each part
  std::vector<std::uint32_t> positions;
  std::vector<float> values;

  Items() = default;
  /// With room for what the runs say.
  explicit Items(std::vector<wire::Run> runs);

  std::int64_t bytes() const { return wire::items_bytes(runs); }
  void pack(std::span<std::byte> out) const;
  /// PeerError where the bytes cannot be items of these runs.
  void unpack(std::span<const std::byte> in);

  /// Those of each part, in the order of parts.
  std::vector<kernels::Given> by_part() const;
};

/// The compressed slices of a gradient in host memory become the sum over `ranks`, in their order,
/// of values times `factor`. Returns whether all of it is finite.
bool scatter(const Shape& shape, const core::Buffer& grad, std::span<const Items> ranks,
             float factor);

}  // namespace scalecom::methods::sparse
