#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/methods/scalecom/shape.h"

/// A bucket's positions to packed offsets and back, on the pool's threads. Positions are those of
/// all items, each in its part.
namespace scalecom::methods::scalecom::host {

void pack(const Shape& shape, const ChunkRange& led, const std::uint32_t* positions,
          std::span<std::byte> out);
/// PeerError where the bytes cannot be offsets.
void unpack(const Shape& shape, const ChunkRange& led, std::span<const std::byte> in,
            std::uint32_t* positions);

/// The same for an exact selection, whose positions count from the first compressed slice on while
/// they cross the network. Part p has the items [first_items[p], first_items[p + 1]), which unpack
/// finds out.
void pack_exact(const Shape& shape, std::span<const std::int64_t> first_items,
                const std::uint32_t* positions, std::span<std::byte> out);
void unpack_exact(const Shape& shape, std::span<const std::byte> in, std::uint32_t* positions,
                  std::span<std::int64_t> first_items);

}  // namespace scalecom::methods::scalecom::host
