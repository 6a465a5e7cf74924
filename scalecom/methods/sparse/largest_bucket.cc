#include "scalecom/methods/sparse/largest_bucket.h"

#include <atomic>
#include <utility>

#include "scalecom/kernels/largest.h"
#include "scalecom/methods/sparse/blocks.h"

namespace scalecom::methods::sparse {

std::vector<wire::Run> largest_runs(const Shape& shape) {
  std::vector<std::int64_t> counts;
  for (const Shape::Part& part : shape.parts) counts.push_back(part.keep());
  return runs_of(shape, counts);
}

LargestBucket::LargestBucket(const layout::Layout& layout, MemoryStore& memories)
    : HostBucket(layout), taken_(largest_runs(shape_)) {
  for (const Shape::Part& part : shape_.parts) {
    memories_.push_back(memories.of(part.name, part.length));
  }
}

void LargestBucket::compress() {
  std::atomic<bool> finite{true};
  for_each_block(shape_, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    // The filter of beta 1: the memory becomes u.
    const kernels::Tensor tensor = tensor_of(shape_.parts[part], grad_, memories_[part]);
    if (!kernels::table().accumulate(tensor, {}, begin, end)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  std::size_t item = 0;
  for (std::size_t part = 0; part < shape_.parts.size(); ++part) {
    const wire::Run& run = taken_.runs[part];
    float* const memory = memories_[part];
    kernels::select_largest(memory, run.length, run.count, taken_.positions.data() + item);
    for (const std::size_t end = item + static_cast<std::size_t>(run.count); item < end; ++item) {
      taken_.values[item] = std::exchange(memory[taken_.positions[item]], 0.0F);
    }
  }
  const bool dense_finite = load_dense(mean_factor());
  set_flag(finite && dense_finite);
}

void LargestBucket::put_back_items() {
  const std::vector<kernels::Given> parts = taken_.by_part();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::int64_t i = 0; i < parts[part].count; ++i) {
      memories_[part][parts[part].positions[i]] = parts[part].values[i];
    }
  }
}

}  // namespace scalecom::methods::sparse
