#include "scalecom/methods/scalecom/host/blocks.h"

#include <algorithm>

namespace scalecom::methods::scalecom::host {
namespace {

// Long enough to make a task's start cheap, short enough to divide a small bucket and to keep a
// block's arrays in the second-level cache.
constexpr std::int64_t kBlockElements = 65'536;

void cut_part(const Shape::Part& part, std::size_t index, const ChunkRange& led,
              std::vector<Block>& blocks) {
  const layout::Cut& cut = part.cut;
  const std::int64_t chunks = cut.chunks();
  const std::int64_t stride = std::max<std::int64_t>(1, kBlockElements / cut.chunk);
  for (std::int64_t first = 0; first < chunks;) {
    std::int64_t last = std::min(chunks, first + stride);
    for (const std::int64_t edge : {led.first - part.first_chunk, led.last - part.first_chunk}) {
      if (edge > first && edge < last) last = edge;
    }
    blocks.push_back({index, first * cut.chunk, std::min(cut.length, last * cut.chunk),
                      part.first_item + cut.kept_before(first),
                      part.first_item + cut.kept_before(last),
                      led.contains(part.first_chunk + first)});
    first = last;
  }
}

}  // namespace

std::vector<Block> cut_into_blocks(const Shape& shape, const ChunkRange& led) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < shape.parts.size(); ++i) cut_part(shape.parts[i], i, led, blocks);
  return blocks;
}

std::vector<Block> cut_into_blocks(const Shape& shape, std::span<const std::int64_t> first_items,
                                   const std::uint32_t* positions) {
  std::vector<Block> blocks;
  for (std::size_t index = 0; index < shape.parts.size(); ++index) {
    const std::int64_t length = shape.parts[index].length;
    const std::uint32_t* items = positions + first_items[index];
    const std::uint32_t* items_end = positions + first_items[index + 1];
    for (std::int64_t begin = 0; begin < length; begin += kBlockElements) {
      const std::int64_t end = std::min(length, begin + kBlockElements);
      const std::uint32_t* next = std::lower_bound(items, items_end, end);
      blocks.push_back({index, begin, end, items - positions, next - positions, false});
      items = next;
    }
  }
  return blocks;
}

}  // namespace scalecom::methods::scalecom::host
