#include "scalecom/kernels/cuda/chunks.cuh"
#include "scalecom/kernels/cuda/entry.cuh"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Policy = policy::Items;

__device__ std::int64_t thread_index() {
  return std::int64_t{blockIdx.x} * Policy::kThreads + static_cast<std::int64_t>(threadIdx.x);
}

// The same from the end on: what the first pass touched last is still in the cache.
__device__ std::int64_t thread_index_from_end() {
  return std::int64_t{gridDim.x - 1 - blockIdx.x} * Policy::kThreads +
         static_cast<std::int64_t>(threadIdx.x);
}

// The items of one part that one rank names, and their first byte among that rank's.
struct Piece {
  std::int64_t first_item = 0;  // of the part
  std::int64_t items = 0;
  std::int64_t first_byte = 0;
};

// The part in which a range begins that touches part `p`.
__device__ int first_part(const Tables& tables, const ChunkRange& range, int p) {
  if (range.first >= tables.d_parts[p].part.first_chunk) return p;
  return last_not_above(p, range.first, [&](int q) { return tables.d_parts[q].part.first_chunk; });
}

// What of part `p` lies in a range that begins in part `begin` and touches it. A range's pieces
// follow one another by parts, each from a whole byte on; all but the first and the last are whole.
__device__ Piece piece_of(const Tables& tables, const ChunkRange& range, int begin, int p) {
  const PartEntry& entry = tables.d_parts[p];
  const layout::Cut& cut = entry.part.cut;
  const std::int64_t first = max(range.first - entry.part.first_chunk, std::int64_t{0});
  const std::int64_t last = min(range.last - entry.part.first_chunk, cut.chunks());
  Piece piece;
  piece.first_item = cut.kept_before(first);
  piece.items = cut.kept_before(last) - piece.first_item;
  if (p == begin) return piece;
  const PartEntry& from = tables.d_parts[begin];
  const std::int64_t kept =
      from.part.cut.kept() - from.part.cut.kept_before(range.first - from.part.first_chunk);
  piece.first_byte = packed_bytes(kept, offset_bits(from.part.cut.chunk)) + entry.first_byte -
                     tables.d_parts[begin + 1].first_byte;
  return piece;
}

// A chunk of a part by one of its items.
__device__ std::int64_t chunk_of_item(const layout::Cut& cut, std::int64_t item) {
  return cut.keep == 1 ? item : min(item / cut.keep, cut.length / cut.chunk);
}

// A thread a byte of the offsets that this rank names.
__global__ void __launch_bounds__(Policy::kThreads) pack_kernel(const __grid_constant__ Pass pass) {
  const Tables& tables = pass.tables;
  const ChunkRange named = named_chunks(pass);
  const std::int64_t byte = thread_index();
  if (named.first == named.last) return;
  const auto first_chunk = [&](int p) { return tables.d_parts[p].part.first_chunk; };
  const int begin = last_not_above(tables.parts, named.first, first_chunk);
  const int end = last_not_above(tables.parts, named.last - 1, first_chunk) + 1;
  const int p = begin + last_not_above(end - begin, byte, [&](int q) {
                  return piece_of(tables, named, begin, begin + q).first_byte;
                });
  const PartEntry& entry = tables.d_parts[p];
  const layout::Cut& cut = entry.part.cut;
  const Piece piece = piece_of(tables, named, begin, p);
  const int bits = offset_bits(cut.chunk);
  if (byte - piece.first_byte >= packed_bytes(piece.items, bits)) return;
  const std::uint32_t* d_positions = pass.step.d_positions + entry.part.first_item;
  const std::uint8_t packed =
      packed_byte(byte - piece.first_byte, piece.items, bits, [&](std::int64_t i) {
        const std::int64_t item = piece.first_item + i;
        return static_cast<std::uint64_t>(d_positions[item] - chunk_of_item(cut, item) * cut.chunk);
      });
  const std::int64_t slot = pass.step.naming == Naming::kShare ? pass.step.rank : 0;
  pass.step.d_packed[slot * pass.step.slot_bytes + byte] = static_cast<std::byte>(packed);
}

// Whose offsets an item's are: their slot, and the chunks that its rank names.
struct Source {
  std::int64_t slot = 0;
  ChunkRange range;
};

__device__ Source source_of(const Pass& pass, std::int64_t chunk) {
  if (pass.step.naming == Naming::kNone) return {0, {0, pass.tables.chunks}};
  const std::int64_t size = pass.step.size;
  const std::int64_t index = share_of(pass.tables.chunks, size, chunk);
  const std::int64_t turned = (index - *pass.step.d_step % size + size) % size;
  return {turned, share(pass.tables.chunks, size, index)};
}

// A thread an item. kOneEach: of each chunk, so that no two items can be the same entry, and each
// can be taken at once.
template <typename Type, bool kOneEach>
__global__ void __launch_bounds__(Policy::kThreads)
    unpack_kernel(const __grid_constant__ Pass pass) {
  const std::int64_t item = thread_index_from_end();
  if (item >= pass.tables.items) return;
  const int p = part_of_item(pass.tables, item);
  const PartEntry& entry = pass.tables.d_parts[p];
  const layout::Cut& cut = entry.part.cut;
  const std::int64_t in_part = item - entry.part.first_item;
  const std::int64_t chunk = kOneEach ? in_part : chunk_of_item(cut, in_part);
  const Source source = source_of(pass, entry.part.first_chunk + chunk);
  if (pass.step.naming == Naming::kShare && source.slot == pass.step.rank) return;
  const bool all = pass.step.naming == Naming::kNone;
  const Piece piece =
      all ? Piece{0, 0, entry.first_byte}
          : piece_of(pass.tables, source.range, first_part(pass.tables, source.range, p), p);
  const std::byte* d_packed =
      pass.step.d_packed + source.slot * pass.step.slot_bytes + piece.first_byte;
  const int bits = offset_bits(cut.chunk);
  const std::int64_t i = in_part - piece.first_item;
  const std::int64_t begin = chunk * cut.chunk;
  std::int64_t offset = packed_offset(d_packed, i, bits);
  bool sound = offset < cut.chunk && begin + offset < cut.length;
  if constexpr (!kOneEach) {
    const bool follows = in_part > chunk * cut.keep;
    if (follows) sound = sound && packed_offset(d_packed, i - 1, bits) < offset;
  }
  if (!sound) {
    offset = 0;
    set_flag(pass);
    if constexpr (!kOneEach) pass.tables.d_state->damaged = 1;
  }
  const auto position = static_cast<std::uint32_t>(begin + offset);
  if constexpr (kOneEach) {
    take_entry<Type>(pass, entry.part, item, position);
  } else {
    pass.step.d_positions[item] = position;
  }
}

__global__ void __launch_bounds__(Policy::kThreads)
    exact_pack_kernel(const __grid_constant__ Pass pass) {
  const std::int64_t byte = thread_index();
  if (byte >= pass.tables.packed_bytes) return;
  const int bits = offset_bits(pass.tables.compressed_elements);
  const auto offset = [&](auto i) { return std::uint64_t{pass.tables.d_absolute[i]}; };
  // Its division by a number of bits takes longer in 64 bits than all the rest.
  const bool narrow = pass.tables.packed_bytes < (std::int64_t{1} << 28);
  const std::uint8_t packed =
      narrow ? packed_byte(static_cast<std::uint32_t>(byte),
                           static_cast<std::uint32_t>(pass.tables.items), bits, offset)
             : packed_byte(byte, pass.tables.items, bits, offset);
  pass.step.d_packed[byte] = static_cast<std::byte>(packed);
}

__global__ void __launch_bounds__(Policy::kThreads)
    exact_unpack_kernel(const __grid_constant__ Pass pass) {
  const std::int64_t item = thread_index();
  if (item >= pass.tables.items) return;
  const int bits = offset_bits(pass.tables.compressed_elements);
  std::uint32_t place = packed_offset(pass.step.d_packed, item, bits);
  bool sound = place < pass.tables.compressed_elements;
  if (item > 0) sound = sound && packed_offset(pass.step.d_packed, item - 1, bits) < place;
  if (!sound) {
    place = 0;
    set_flag(pass);
    pass.tables.d_state->damaged = 1;
  }
  pass.tables.d_absolute[item] = place;
}

// Where an exact item lies.
struct ExactPlace {
  __device__ ExactPlace(const Tables& tables, std::int64_t item) {
    if (item < 0) return;
    const std::int64_t element = tables.d_absolute[item];
    part = last_not_above(tables.parts, element,
                          [&](int p) { return tables.d_parts[p].first_element; });
    position = element - tables.d_parts[part].first_element;
    tile = tables.d_parts[part].first_tile + position / policy::FirstPass::kRunElements;
  }

  int part = -1;
  std::int64_t position = 0;
  std::int64_t tile = -1;
};

// The part of an exact item, whose position is set. The parts and tiles that begin with it learn
// so.
__device__ int exact_part(const Pass& pass, std::int64_t item) {
  const Tables& tables = pass.tables;
  const ExactPlace place(tables, item);
  const ExactPlace before(tables, item - 1);
  for (int p = before.part + 1; p <= place.part; ++p) tables.d_first_items[p] = item;
  for (std::int64_t t = before.tile + 1; t <= place.tile; ++t) tables.d_tile_items[t] = item;
  if (item == tables.items - 1) {
    for (int p = place.part + 1; p < tables.parts; ++p) tables.d_first_items[p] = tables.items;
    for (std::int64_t t = place.tile + 1; t < tables.tiles; ++t) {
      tables.d_tile_items[t] = tables.items;
    }
  }
  pass.step.d_positions[item] = static_cast<std::uint32_t>(place.position);
  return place.part;
}

// A thread an item whose place is known. Damaged offsets may name an entry twice, so that none is
// taken: finish() refuses this step.
template <typename Type, bool kExact>
__global__ void __launch_bounds__(Policy::kThreads)
    take_unpacked_kernel(const __grid_constant__ Pass pass) {
  const std::int64_t item = thread_index_from_end();
  const Tables& tables = pass.tables;
  if (item >= tables.items) return;
  const int p = kExact ? exact_part(pass, item) : part_of_item(tables, item);
  const Part& part = tables.d_parts[p].part;
  if (!kExact && pass.step.naming == Naming::kShare) {
    const std::int64_t chunk = part.first_chunk + chunk_of_item(part.cut, item - part.first_item);
    if (source_of(pass, chunk).slot == pass.step.rank) return;
  }
  const std::uint32_t position = pass.step.d_positions[item];
  if (tables.d_state->damaged == 0) {
    take_entry<Type>(pass, part, item, position);
  } else {
    pass.step.d_before[item] = part.d_memory[position];
    pass.step.d_message[item] = 0;
  }
}

template <typename Kernel>
void launch(Kernel kernel, std::int64_t threads, const Pass& pass, const char* name,
            cudaStream_t stream) {
  if (threads == 0) return;
  kernel<<<blocks_for(threads, Policy::kThreads), Policy::kThreads, 0, stream>>>(pass);
  core::cuda::check(cudaGetLastError(), name);
}

}  // namespace

void launch_pack(const Pass& pass, cudaStream_t stream) {
  const bool share = pass.step.naming == Naming::kShare;
  const std::int64_t bytes = share ? pass.step.slot_bytes : pass.tables.packed_bytes;
  launch(pack_kernel, bytes, pass, "pack", stream);
}

void launch_exact_pack(const Pass& pass, cudaStream_t stream) {
  launch(exact_pack_kernel, pass.tables.packed_bytes, pass, "exact_pack", stream);
}

void launch_unpack(const Pass& pass, cudaStream_t stream) {
  const bool one_each = pass.tables.kind == layout::Selection::Kind::kLargest;
  with_type(pass.step.dtype, [&](auto type) {
    using Type = decltype(type);
    launch(one_each ? unpack_kernel<Type, true> : unpack_kernel<Type, false>, pass.tables.items,
           pass, "unpack", stream);
  });
}

void launch_exact_unpack(const Pass& pass, cudaStream_t stream) {
  launch(exact_unpack_kernel, pass.tables.items, pass, "exact_unpack", stream);
}

void launch_take_unpacked(const Pass& pass, cudaStream_t stream) {
  const bool exact = pass.tables.kind == layout::Selection::Kind::kExact;
  with_type(pass.step.dtype, [&](auto type) {
    using Type = decltype(type);
    launch(exact ? take_unpacked_kernel<Type, true> : take_unpacked_kernel<Type, false>,
           pass.tables.items, pass, "take_unpacked", stream);
  });
}

}  // namespace scalecom::kernels::cuda
