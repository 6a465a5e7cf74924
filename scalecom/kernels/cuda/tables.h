#pragma once

#include <cstdint>
#include <vector>

#include "scalecom/kernels/cuda/step.h"

/// What a shape fixes, laid out for kernels: one launch covers all tensors of a bucket.
namespace scalecom::kernels::cuda {

/// A run of one part's elements: one block's work at a time. A part whose selection looks at chunks
/// of up to policy::FirstPass::kLongestChunk elements has tiles of whole chunks; others have tiles
/// of elements, over which chunks may stretch.
struct alignas(16) Tile {
  float* d_memory = nullptr;     ///< of its first element
  std::int64_t grad = 0;         ///< its first element, in the bucket
  std::int64_t first_item = 0;   ///< of its first chunk, whole or not
  std::int64_t first_chunk = 0;  ///< its first chunk, whole or not, in the bucket's count
  /// Of whole chunks: their first byte among all packed offsets. Of long chunks: the first of them
  /// among all long ones.
  std::int64_t place = 0;
  std::uint32_t begin = 0;  ///< its first element, in its tensor
  std::uint32_t elements = 0;
  std::uint32_t chunk = 1;
  std::uint32_t part = 0;
  std::uint32_t items = 0;  ///< that may lie in it; of an exact selection not known here
  std::uint32_t whole_chunks = 0;
};

/// A run of one dense part's elements, and their place among all dense elements.
struct DenseTile {
  std::int64_t grad = 0;
  std::int64_t place = 0;
  std::int64_t elements = 0;
};

struct PartEntry {
  Part part;
  std::int64_t first_byte = 0;     ///< among all packed offsets
  std::int64_t first_long = 0;     ///< among all chunks that are too long for a tile
  std::int64_t first_element = 0;  ///< among all compressed elements
  std::int64_t first_tile = 0;
};

/// Which of 2^n values a key's upper bits may have, and how many keys with exactly those are kept.
struct Threshold {
  std::uint32_t bits = 0;
  std::uint32_t wanted = 0;
};

/// What kernels leave to one another. Zero between steps, but for what the next kernel of the step
/// is to find.
struct State {
  std::uint32_t blocks_done = 0;  ///< of the launch under way
  std::uint32_t refused = 0;      ///< a sum is not finite
  std::uint32_t damaged = 0;      ///< the offsets were
  std::uint32_t guess = 0;        ///< an exact selection's threshold is hardly under this key
  std::uint32_t listed = 0;       ///< candidates
  std::uint32_t complete = 0;     ///< all that are kept are among them
  Threshold threshold[3];         ///< after each round of narrowing it down
};

/// The candidates of a tile, in the list: they lie there by their places, tile after tile in any
/// order.
struct Segment {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Entries that an exact selection may keep, as they are before they are settled.
struct CandidateList {
  std::uint16_t* d_place = nullptr;  ///< in its tile
  float* d_u = nullptr;
  float* d_memory = nullptr;
};

/// What a block of a launch has counted, for those after it.
struct BlockCounts {
  std::uint64_t counts = 0;
  std::uint32_t known = 0;
};

/// Device addresses, and how much lies there; passed to kernels by value.
struct Tables {
  const Tile* d_tiles = nullptr;
  const DenseTile* d_dense_tiles = nullptr;
  const PartEntry* d_parts = nullptr;
  /// The first item of each part, and the end of the last. Of an exact selection, as it was last.
  std::int64_t* d_first_items = nullptr;
  State* d_state = nullptr;
  std::uint64_t* d_best = nullptr;  ///< of each long chunk: the largest key, and its place
  std::uint32_t* d_histogram = nullptr;
  std::uint32_t* d_sample = nullptr;  ///< keys of some entries
  CandidateList list;
  Segment* d_segments = nullptr;           ///< of each tile
  std::uint64_t* d_tile_counts = nullptr;  ///< equal << 32 | above
  BlockCounts* d_block_counts = nullptr;
  std::int64_t* d_tile_items = nullptr;  ///< the first item of each tile, and the end of the last
  std::uint32_t* d_absolute = nullptr;   ///< an exact item's place among all compressed elements

  layout::Selection::Kind kind = layout::Selection::Kind::kLargest;
  std::int32_t parts = 0;
  std::int64_t tiles = 0;
  std::int64_t dense_tiles = 0;
  std::int64_t chunks = 0;
  std::int64_t long_chunks = 0;
  std::int64_t items = 0;
  std::int64_t compressed_elements = 0;
  std::int64_t dense_elements = 0;
  std::int64_t packed_bytes = 0;  ///< of all offsets
  std::int64_t list_capacity = 0;
  std::int32_t tile_elements = 0;  ///< the most of any
  std::int32_t tile_chunks = 0;
};

/// The tables as they are filled in.
struct HostTables {
  explicit HostTables(const Shape& shape);

  /// Where everything lies from `d_scratch` on; `bytes` becomes its end.
  Tables place(void* d_scratch, std::int64_t* bytes) const;

  std::vector<Tile> tiles;
  std::vector<DenseTile> dense_tiles;
  std::vector<PartEntry> parts;
  std::vector<std::int64_t> first_items;
  Tables sizes;  ///< its addresses are unset

 private:
  void add(const Part& part);
  void add_chunk_tiles(const Part& part, std::int64_t first_byte);
  void add_runs(const Part& part, std::int64_t first_place);
  void push(const Tile& tile);
  void add(const DensePart& part);
};

}  // namespace scalecom::kernels::cuda
