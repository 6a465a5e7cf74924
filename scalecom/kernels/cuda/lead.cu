#include "scalecom/kernels/cuda/chunks.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"
#include "scalecom/kernels/cuda/stage.cuh"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::FirstPass;

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;

// The largest key seen, and where it lies; the lowest place among equals.
struct Best {
  std::uint32_t key = 0;
  std::uint32_t place = 0xffffffffU;

  __device__ void improve(std::uint32_t other_key, std::uint32_t other_place) {
    if (other_key > key || (other_key == key && other_place < place)) {
      key = other_key;
      place = other_place;
    }
  }
};

// Over the keys at places from, from + stride, ... before `to`.
__device__ Best scan_keys(const Stage& stage, int from, int to, int stride) {
  Best best;
  if (from >= to) return best;
  best = {stage.key(from), static_cast<std::uint32_t>(from)};
#pragma unroll 4
  for (int i = from + stride; i < to; i += stride) {
    const std::uint32_t key = stage.key(i);
    if (key > best.key) best = {key, static_cast<std::uint32_t>(i)};
  }
  return best;
}

// The best of `lanes` neighbouring lanes, a power of two, in all of them.
__device__ Best best_of_lanes(Best best, int lanes) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const std::uint32_t key = __shfl_xor_sync(kAllLanes, best.key, distance);
    const std::uint32_t place = __shfl_xor_sync(kAllLanes, best.place, distance);
    best.improve(key, place);
  }
  return best;
}

// One lane's part of a chunk. Lanes of different chunks start at different places where chunks
// begin in the same few banks of shared memory.
__device__ Best scan_chunk(const Stage& stage, int begin, int end, int lane, int lanes, int turn) {
  const int steps = (end - begin + lanes - 1) / lanes;
  const int start = begin + lane + (turn % steps) * lanes;
  Best best = scan_keys(stage, start, end, lanes);
  if (turn == 0) return best;
  const Best before = scan_keys(stage, begin + lane, min(start, end), lanes);
  best.improve(before.key, before.place);
  return best;
}

// As many lanes a chunk as there are threads for, a power of two.
__device__ int lanes_a_chunk(int chunks) {
  int lanes = kWarp;
  while (lanes > 1 && lanes * chunks > Policy::kThreads) lanes /= 2;
  return lanes;
}

// Takes the largest of each chunk that this rank names; `offsets` comes to hold where in its chunk
// each lies.
__device__ void lead_chunks(const Pass& pass, const Tile& tile, Stage& stage,
                            std::uint16_t* offsets) {
  const ChunkRange named = named_chunks(pass);
  const auto chunk = static_cast<int>(tile.chunk);
  const auto elements = static_cast<int>(tile.elements);
  const auto chunks = static_cast<int>(tile.items);
  const int lanes = lanes_a_chunk(chunks);
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int turns = lanes < kWarp && (chunk / lanes) % 2 == 0 ? 1 : 0;
  for (int base = 0; base < chunks; base += Policy::kThreads / lanes) {
    const int c = base + static_cast<int>(threadIdx.x) / lanes;
    const bool mine = c < chunks && named.contains(tile.first_chunk + c);
    Best best;
    if (mine) {
      best = scan_chunk(stage, c * chunk, min((c + 1) * chunk, elements), lane, lanes, c * turns);
    }
    best = best_of_lanes(best, lanes);
    if (!mine || lane != 0) continue;
    const auto place = static_cast<int>(best.place);
    stage.take(pass, tile, tile.first_item + c, place);
    offsets[c] = static_cast<std::uint16_t>(place - c * chunk);
  }
}

// All of a tile's offsets begin at a whole byte, and fill whole bytes unless its part ends.
__device__ void pack_tile(const Pass& pass, const Tile& tile, const std::uint16_t* offsets) {
  const int bits = offset_bits(tile.chunk);
  const auto items = static_cast<int>(tile.items);
  const auto bytes = static_cast<int>(packed_bytes(items, bits));
  for (int byte = static_cast<int>(threadIdx.x); byte < bytes; byte += Policy::kThreads) {
    const std::uint8_t packed =
        packed_byte(byte, items, bits, [&](int i) { return std::uint64_t{offsets[i]}; });
    pass.step.d_packed[tile.place + byte] = static_cast<std::byte>(packed);
  }
}

// The largest of what the tile holds of each long chunk. A warp looks at a part of the tile.
__device__ void lead_pieces(const Pass& pass, const Tile& tile, const Stage& stage) {
  const ChunkRange named = named_chunks(pass);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  constexpr int kWarps = Policy::kThreads / kWarp;
  const int share = (static_cast<int>(tile.elements) + kWarps - 1) / kWarps;
  int from = static_cast<int>(threadIdx.x) / kWarp * share;
  const int to = min(from + share, static_cast<int>(tile.elements));
  const std::uint32_t first = tile.begin / tile.chunk;
  while (from < to) {
    const std::uint32_t c = (tile.begin + static_cast<std::uint32_t>(from)) / tile.chunk;
    const std::int64_t chunk_end = (std::int64_t{c} + 1) * tile.chunk - tile.begin;
    const auto end = static_cast<int>(min(static_cast<std::int64_t>(to), chunk_end));
    const std::int64_t in_tile = c - first;
    if (named.contains(tile.first_chunk + in_tile)) {
      const Best best = best_of_lanes(scan_keys(stage, from + lane, end, kWarp), kWarp);
      const std::uint64_t ranked =
          (std::uint64_t{best.key} << 32) | (0xffffffffU - (tile.begin + best.place));
      if (lane == 0) {
        atomicMax(reinterpret_cast<unsigned long long*>(pass.tables.d_best + tile.place + in_tile),
                  static_cast<unsigned long long>(ranked));
      }
    }
    from = end;
  }
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    lead_kernel(const __grid_constant__ Pass pass, bool packs) {
  extern __shared__ uint4 shared[];
  const std::int64_t block = blockIdx.x;
  if (block >= pass.tables.tiles) {
    load_dense<Type>(pass, pass.tables.d_dense_tiles[block - pass.tables.tiles]);
    return;
  }
  const int most = pass.tables.tile_elements;
  auto* offsets = reinterpret_cast<std::uint16_t*>(shared + Stage::bytes(most) / sizeof(uint4));
  const Tile tile = pass.tables.d_tiles[block];
  Stage stage(shared, most);
  stage.load<Type, Policy::kThreads>(pass, tile);
  if (tile.whole_chunks != 0) {
    lead_chunks(pass, tile, stage, offsets);
  } else {
    lead_pieces(pass, tile, stage);
  }
  __syncthreads();
  stage.store<Type, Policy::kThreads>(tile);
  if (packs) pack_tile(pass, tile, offsets);
}

// Takes the entry of each chunk that the packed offsets name. Where they cannot be offsets, the
// chunk's first entry is as good as any: the step is refused.
__device__ void follow_chunks(const Pass& pass, const Tile& tile, Stage& stage,
                              std::uint32_t offset) {
  const auto chunk = static_cast<int>(tile.chunk);
  const auto chunks = static_cast<int>(tile.items);
  for (int c = static_cast<int>(threadIdx.x); c < chunks;) {
    if (offset >= tile.chunk || c * chunk + offset >= tile.elements) {
      offset = 0;
      set_flag(pass);
    }
    stage.take(pass, tile, tile.first_item + c, c * chunk + static_cast<int>(offset));
    c += Policy::kThreads;
    if (c < chunks) offset = packed_offset(pass.step.d_packed + tile.place, c, offset_bits(chunk));
  }
}

template <typename Type>
__global__ void __launch_bounds__(Policy::kThreads)
    follow_kernel(const __grid_constant__ Pass pass) {
  extern __shared__ uint4 shared[];
  const Tile tile = pass.tables.d_tiles[blockIdx.x];
  // Under way while the tile is.
  std::uint32_t offset = 0;
  if (threadIdx.x < tile.items) {
    offset = packed_offset(pass.step.d_packed + tile.place, static_cast<int>(threadIdx.x),
                           offset_bits(tile.chunk));
  }
  Stage stage(shared, pass.tables.tile_elements);
  stage.load<Type, Policy::kThreads>(pass, tile);
  follow_chunks(pass, tile, stage, offset);
  __syncthreads();
  stage.store<Type, Policy::kThreads>(tile);
}

template <typename Type>
__global__ void __launch_bounds__(policy::Items::kThreads)
    take_best_kernel(const __grid_constant__ Pass pass) {
  const std::int64_t chunk =
      std::int64_t{blockIdx.x} * policy::Items::kThreads + static_cast<std::int64_t>(threadIdx.x);
  if (chunk >= pass.tables.long_chunks) return;
  const PartEntry& entry = pass.tables.d_parts[part_of_long_chunk(pass.tables, chunk)];
  const std::int64_t in_part = chunk - entry.first_long;
  if (!named_chunks(pass).contains(entry.part.first_chunk + in_part)) return;
  const std::uint32_t position =
      0xffffffffU - static_cast<std::uint32_t>(pass.tables.d_best[chunk]);
  take_entry<Type>(pass, entry.part, entry.part.first_item + in_part, position);
}

}  // namespace

void launch_lead(const Pass& pass, bool packs, cudaStream_t stream) {
  const std::int64_t blocks = pass.tables.tiles + pass.tables.dense_tiles;
  if (blocks == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    const auto kernel = lead_kernel<decltype(type)>;
    const std::size_t shared =
        allow_stage(kernel, pass.tables.tile_elements, pass.tables.tile_chunks);
    kernel<<<blocks_for(blocks, 1), Policy::kThreads, shared, stream>>>(pass, packs);
  });
  core::cuda::check(cudaGetLastError(), "lead");
}

void launch_follow(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.tiles == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    const auto kernel = follow_kernel<decltype(type)>;
    const std::size_t shared = allow_stage(kernel, pass.tables.tile_elements, 0);
    kernel<<<blocks_for(pass.tables.tiles, 1), Policy::kThreads, shared, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "follow");
}

void launch_take_best(const Pass& pass, cudaStream_t stream) {
  if (pass.tables.long_chunks == 0) return;
  with_type(pass.step.dtype, [&](auto type) {
    take_best_kernel<decltype(type)><<<blocks_for(pass.tables.long_chunks, policy::Items::kThreads),
                                       policy::Items::kThreads, 0, stream>>>(pass);
  });
  core::cuda::check(cudaGetLastError(), "take_best");
}

}  // namespace scalecom::kernels::cuda
