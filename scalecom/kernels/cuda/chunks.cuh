#pragma once

#include "scalecom/kernels/cuda/launch.h"

/// Whose chunks are whose, and where their packed offsets lie. Restated from comm/traffic.h and
/// wire/offsets.h for the device; the tests hold them to those.
namespace scalecom::kernels::cuda {

/// A run of chunks, in the bucket's count.
struct ChunkRange {
  std::int64_t first = 0;
  std::int64_t last = 0;

  __device__ bool contains(std::int64_t chunk) const { return chunk >= first && chunk < last; }
};

/// comm::share
__device__ inline ChunkRange share(std::int64_t chunks, std::int64_t size, std::int64_t index) {
  const std::int64_t whole = chunks / size;
  const std::int64_t rest = chunks % size;
  const std::int64_t first = index * whole + (index < rest ? index : rest);
  return {first, first + whole + (index < rest ? 1 : 0)};
}

/// The index of the share that holds a chunk.
__device__ inline std::int64_t share_of(std::int64_t chunks, std::int64_t size,
                                        std::int64_t chunk) {
  const std::int64_t whole = chunks / size;
  const std::int64_t rest = chunks % size;
  const std::int64_t in_longer = rest * (whole + 1);
  return chunk < in_longer ? chunk / (whole + 1) : rest + (chunk - in_longer) / whole;
}

/// The chunks that this rank names.
__device__ inline ChunkRange named_chunks(const Pass& pass) {
  const Step& step = pass.step;
  if (step.naming == Naming::kNone) return {};
  if (step.naming == Naming::kAll) return {0, pass.tables.chunks};
  return share(pass.tables.chunks, step.size, (step.rank + *step.d_step) % step.size);
}

/// wire::offset_bits
__device__ inline int offset_bits(std::int64_t chunk) {
  return 64 - __clzll(chunk - 1);
}

__device__ inline std::int64_t packed_bytes(std::int64_t count, int bits) {
  return (count * bits + 7) / 8;
}

/// Byte `byte` of `count` offsets packed in `bits` each; offset(i) is the i-th. Index is wide
/// enough for their bits.
template <typename Index, typename Offset>
__device__ std::uint8_t packed_byte(Index byte, Index count, int bits, Offset offset) {
  const Index first_bit = byte * 8;
  std::uint64_t value = 0;
  for (Index i = first_bit / bits; i < count && i * bits < first_bit + 8; ++i) {
    const auto shift = static_cast<int>(i * bits - first_bit);
    const std::uint64_t bits_of_it = offset(i);
    value |= shift >= 0 ? bits_of_it << shift : bits_of_it >> -shift;
  }
  return static_cast<std::uint8_t>(value);
}

/// The i-th of the offsets packed from `d_packed` on.
template <typename Index>
__device__ std::uint32_t packed_offset(const std::byte* d_packed, Index i, int bits) {
  if (bits == 0) return 0;
  const Index first_bit = i * bits;
  const Index last_byte = (first_bit + bits - 1) / 8;
  std::uint64_t value = 0;
  int shift = 0;
  for (Index byte = first_bit / 8; byte <= last_byte; ++byte, shift += 8) {
    value |= static_cast<std::uint64_t>(d_packed[byte]) << shift;
  }
  return static_cast<std::uint32_t>((value >> (first_bit % 8)) & ((std::uint64_t{1} << bits) - 1));
}

}  // namespace scalecom::kernels::cuda
