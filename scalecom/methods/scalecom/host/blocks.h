#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scalecom/core/thread_pool.h"
#include "scalecom/methods/scalecom/shape.h"

namespace scalecom::methods::scalecom::host {

/// A piece of work for one thread: elements [begin, end) of a part, and their items.
struct Block {
  std::size_t part = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first_item = 0;
  std::int64_t last_item = 0;
  bool led = false;  ///< this rank names its entries

  std::int64_t items() const { return last_item - first_item; }
  /// The chunks of its part that it is made of: [first, last).
  std::pair<std::int64_t, std::int64_t> chunks(const layout::Cut& cut) const {
    return {begin / cut.chunk, (end + cut.chunk - 1) / cut.chunk};
  }
};

/// All compressed elements in blocks of whole chunks, none of them partly in `led`.
std::vector<Block> cut_into_blocks(const Shape& shape, const ChunkRange& led);

/// Those of an exact selection: blocks of elements, with the items among `positions`, of which part
/// p has [first_items[p], first_items[p + 1]).
std::vector<Block> cut_into_blocks(const Shape& shape, std::span<const std::int64_t> first_items,
                                   const std::uint32_t* positions);

/// work(block) for every block, on the pool.
template <typename Work>
void for_each(const std::vector<Block>& blocks, const Work& work) {
  core::parallel_for(static_cast<std::int64_t>(blocks.size()),
                     [&](std::int64_t i) { work(blocks[static_cast<std::size_t>(i)]); });
}

}  // namespace scalecom::methods::scalecom::host
