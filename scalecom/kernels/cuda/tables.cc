#include "scalecom/kernels/cuda/tables.h"

#include <algorithm>
#include <bit>

#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda {
namespace {

using Kind = layout::Selection::Kind;
using Policy = policy::FirstPass;

// Hands out memory from an address on, each array at a boundary of its own.
class Arena {
 public:
  explicit Arena(void* begin) : begin_(static_cast<std::byte*>(begin)) {}

  template <typename T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kBoundary = 256;
    const std::int64_t at = used_;
    used_ += (count * static_cast<std::int64_t>(sizeof(T)) + kBoundary - 1) / kBoundary * kBoundary;
    return begin_ == nullptr ? nullptr : reinterpret_cast<T*>(begin_ + at);
  }
  std::int64_t used() const { return used_; }

 private:
  std::byte* begin_;
  std::int64_t used_ = 0;
};

bool looks_at_chunks(Kind kind) {
  return kind == Kind::kLargest || kind == Kind::kTop;
}

std::int64_t packed_bytes(const layout::Cut& cut) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(cut.chunk - 1));
  return (cut.kept() * bits + 7) / 8;
}

// As near to the policy's number of elements as whole steps of chunks come. Steps are of whole
// cache lines where several fit into a tile.
std::int64_t chunks_of_tile(std::int64_t chunk) {
  std::int64_t step = Policy::kTileStep;
  while (step * chunk % Policy::kLineElements != 0 && 2 * step * chunk <= Policy::kTileElements) {
    step *= 2;
  }
  const std::int64_t steps = (Policy::kTileElements + step * chunk / 2) / (step * chunk);
  return std::clamp<std::int64_t>(steps * step, Policy::kTileStep, Policy::kMostTileChunks);
}

// Of an exact selection. A short list costs little.
std::int64_t list_capacity(std::int64_t elements, std::int64_t items) {
  using Exact = policy::Exact;
  return std::min(elements,
                  items + items / Exact::kListedMoreOneIn +
                      std::max<std::int64_t>(Policy::kRunElements, elements / Exact::kListedOneIn));
}

}  // namespace

HostTables::HostTables(const Shape& shape) {
  sizes.kind = shape.selection.kind;
  sizes.parts = static_cast<std::int32_t>(shape.parts.size());
  sizes.chunks = shape.chunks;
  sizes.items = shape.items;
  sizes.dense_elements = shape.dense_elements;
  for (const Part& part : shape.parts) add(part);
  first_items.push_back(shape.items);
  for (const DensePart& part : shape.dense) add(part);
  sizes.tiles = static_cast<std::int64_t>(tiles.size());
  sizes.dense_tiles = static_cast<std::int64_t>(dense_tiles.size());
  if (sizes.kind == Kind::kExact && sizes.compressed_elements > 0) {
    sizes.packed_bytes =
        packed_bytes({sizes.compressed_elements, sizes.compressed_elements, sizes.items, 0});
    sizes.list_capacity = list_capacity(sizes.compressed_elements, sizes.items);
  }
}

void HostTables::add(const Part& part) {
  parts.push_back({part, sizes.packed_bytes, sizes.long_chunks, sizes.compressed_elements,
                   static_cast<std::int64_t>(tiles.size())});
  first_items.push_back(part.first_item);
  sizes.compressed_elements += part.cut.length;
  if (sizes.kind == Kind::kExact) {
    add_runs(part, 0);
    return;
  }
  if (!looks_at_chunks(sizes.kind)) {
    add_runs(part, 0);
  } else if (part.cut.chunk <= Policy::kLongestChunk) {
    add_chunk_tiles(part, sizes.packed_bytes);
  } else {
    add_runs(part, sizes.long_chunks);
    sizes.long_chunks += part.cut.chunks();
  }
  sizes.packed_bytes += packed_bytes(part.cut);
}

void HostTables::add_chunk_tiles(const Part& part, std::int64_t first_byte) {
  const layout::Cut& cut = part.cut;
  const std::int64_t chunks = cut.chunks();
  const std::int64_t step = chunks_of_tile(cut.chunk);
  const int bits = std::bit_width(static_cast<std::uint64_t>(cut.chunk - 1));
  for (std::int64_t first = 0; first < chunks; first += step) {
    const std::int64_t last = std::min(chunks, first + step);
    const std::int64_t begin = first * cut.chunk;
    push({.d_memory = part.d_memory + begin,
          .grad = part.offset + begin,
          .first_item = part.first_item + cut.kept_before(first),
          .first_chunk = part.first_chunk + first,
          .place = first_byte + cut.kept_before(first) * bits / 8,
          .begin = static_cast<std::uint32_t>(begin),
          .elements = static_cast<std::uint32_t>(std::min(cut.length, last * cut.chunk) - begin),
          .chunk = static_cast<std::uint32_t>(cut.chunk),
          .part = static_cast<std::uint32_t>(parts.size() - 1),
          .items = static_cast<std::uint32_t>(cut.kept_before(last) - cut.kept_before(first)),
          .whole_chunks = 1});
    sizes.tile_chunks = std::max(sizes.tile_chunks, static_cast<std::int32_t>(last - first));
  }
}

void HostTables::add_runs(const Part& part, std::int64_t first_place) {
  const bool exact = sizes.kind == Kind::kExact;
  const layout::Cut& cut = part.cut;
  for (std::int64_t begin = 0; begin < cut.length; begin += Policy::kRunElements) {
    const std::int64_t end = std::min<std::int64_t>(cut.length, begin + Policy::kRunElements);
    Tile tile{.d_memory = part.d_memory + begin,
              .grad = part.offset + begin,
              .begin = static_cast<std::uint32_t>(begin),
              .elements = static_cast<std::uint32_t>(end - begin),
              .part = static_cast<std::uint32_t>(parts.size() - 1)};
    if (!exact) {
      const std::int64_t first = begin / cut.chunk;
      const std::int64_t last = (end + cut.chunk - 1) / cut.chunk;
      tile.chunk = static_cast<std::uint32_t>(cut.chunk);
      tile.first_chunk = part.first_chunk + first;
      tile.first_item = part.first_item + cut.kept_before(first);
      tile.place = first_place + first;
      tile.items = static_cast<std::uint32_t>(cut.kept_before(last) - cut.kept_before(first));
    }
    push(tile);
  }
}

void HostTables::push(const Tile& tile) {
  sizes.tile_elements = std::max(sizes.tile_elements, static_cast<std::int32_t>(tile.elements));
  tiles.push_back(tile);
}

void HostTables::add(const DensePart& part) {
  for (std::int64_t begin = 0; begin < part.length; begin += Policy::kRunElements) {
    dense_tiles.push_back({part.offset + begin, part.place + begin,
                           std::min<std::int64_t>(Policy::kRunElements, part.length - begin)});
  }
}

Tables HostTables::place(void* d_scratch, std::int64_t* bytes) const {
  const bool exact = sizes.kind == Kind::kExact;
  Arena arena(d_scratch);
  Tables tables = sizes;
  tables.d_state = arena.take<State>(1);
  tables.d_first_items = arena.take<std::int64_t>(sizes.parts + 1);
  tables.d_parts = arena.take<PartEntry>(sizes.parts);
  tables.d_tiles = arena.take<Tile>(sizes.tiles);
  tables.d_dense_tiles = arena.take<DenseTile>(sizes.dense_tiles);
  tables.d_best = arena.take<std::uint64_t>(sizes.long_chunks);
  tables.d_histogram = arena.take<std::uint32_t>(exact ? 1 << policy::Exact::kFirstBits : 0);
  tables.d_sample = arena.take<std::uint32_t>(
      exact ? policy::Exact::kGuessBlocks * policy::Exact::kGuessThreads : 0);
  tables.d_segments = arena.take<Segment>(exact ? sizes.tiles : 0);
  tables.d_tile_counts = arena.take<std::uint64_t>(exact ? sizes.tiles : 0);
  tables.d_block_counts = arena.take<BlockCounts>(exact ? policy::Exact::kMostTakeBlocks : 0);
  tables.d_tile_items = arena.take<std::int64_t>(exact ? sizes.tiles + 1 : 0);
  tables.list.d_place = arena.take<std::uint16_t>(sizes.list_capacity);
  tables.list.d_u = arena.take<float>(sizes.list_capacity);
  tables.list.d_memory = arena.take<float>(sizes.list_capacity);
  tables.d_absolute = arena.take<std::uint32_t>(exact ? sizes.items : 0);
  *bytes = arena.used();
  return tables;
}

}  // namespace scalecom::kernels::cuda
