#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scalecom/core/buffer.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/sparse/shape.h"

namespace scalecom::methods::sparse {

/// work(part, begin, end) over the elements of all parts, in blocks, on the pool.
template <typename Work>
void for_each_block(const Shape& shape, const Work& work) {
  // Long enough to make a task's start cheap, short enough to divide a small bucket.
  constexpr std::int64_t kBlock = 65'536;
  std::vector<std::int64_t> first_blocks;
  std::int64_t blocks = 0;
  for (const Shape::Part& part : shape.parts) {
    first_blocks.push_back(blocks);
    blocks += (part.length + kBlock - 1) / kBlock;
  }
  core::parallel_for(blocks, [&](std::int64_t block) {
    const auto after = std::upper_bound(first_blocks.begin(), first_blocks.end(), block);
    const auto part = static_cast<std::size_t>(after - first_blocks.begin() - 1);
    const std::int64_t begin = (block - first_blocks[part]) * kBlock;
    work(part, begin, std::min(shape.parts[part].length, begin + kBlock));
  });
}

/// A part as kernels take it.
inline kernels::Tensor tensor_of(const Shape::Part& part, const core::Buffer& grad, float* memory) {
  return {grad.at(part.offset), grad.dtype, memory, part.length};
}

}  // namespace scalecom::methods::sparse
