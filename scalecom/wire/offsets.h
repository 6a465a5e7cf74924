#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "scalecom/layout/selection.h"

/// What crosses the network, to the bit. An offset is a kept entry's place in its chunk, in
/// ceil(log2(chunk)) bits; offsets follow one another from the lowest bit of the first byte up. The
/// offsets of one slice, or of one rank's part of it, fill whole bytes; spare bits are 0.
namespace scalecom::wire {

constexpr int offset_bits(std::int64_t chunk) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(chunk - 1)));
}

constexpr std::int64_t packed_bytes(std::int64_t count, int bits) {
  return (count * bits + 7) / 8;
}

/// Bytes of the offsets of chunks [first, last) of a slice.
constexpr std::int64_t packed_bytes(const layout::Cut& cut, std::int64_t first, std::int64_t last) {
  return packed_bytes(cut.kept_before(last) - cut.kept_before(first), offset_bits(cut.chunk));
}

/// Packs the offsets of chunks [first, last). `positions` are those of the whole slice, as
/// kernels::Taken has them; `out` holds packed_bytes(cut, first, last).
void pack(const layout::Cut& cut, std::int64_t first, std::int64_t last,
          const std::uint32_t* positions, std::span<std::byte> out);

/// The reverse. Returns false, with the positions undefined, where the bytes cannot have come from
/// pack(): an offset outside its chunk, or offsets of one chunk that do not ascend.
[[nodiscard]] bool unpack(const layout::Cut& cut, std::int64_t first, std::int64_t last,
                          std::span<const std::byte> in, std::uint32_t* positions);

}  // namespace scalecom::wire
