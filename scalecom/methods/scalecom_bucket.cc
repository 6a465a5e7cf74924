#include "scalecom/methods/scalecom_bucket.h"

#include <algorithm>

#include "scalecom/methods/blocks.h"

namespace scalecom::methods {

ScaleComBucket::ScaleComBucket(const layout::Layout& layout, const layout::Selection& selection,
                               MemoryStore& memories)
    : shape_(layout, selection) {
  for (const BucketShape::Part& part : shape_.parts) {
    tensors_.push_back(
        {nullptr, core::DType::kFloat32, memories.of(part.name, part.length), part.length});
    first_items_.push_back(part.first_item);
  }
  first_items_.push_back(shape_.items);
  if (shape_.items == 0) return;  // all dense: summed where it lies
  positions_ = core::AlignedArray<std::uint32_t>(shape_.items);
  before_ = core::AlignedArray<float>(shape_.items);
  message_ = core::AlignedArray<float>(shape_.items + shape_.dense_elements + 1);
}

void ScaleComBucket::begin(const core::Buffer& grad, std::int64_t step) {
  grad_ = grad;
  step_ = step;
  sent_ = false;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].grad = element(grad, shape_.parts[i].offset);
    tensors_[i].dtype = grad.dtype;
  }
}

void ScaleComBucket::set_items(std::span<const std::int64_t> counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) first_items_[i + 1] = first_items_[i] + counts[i];
}

const std::vector<ScaleComBucket::Block>& ScaleComBucket::blocks(const ChunkRange& led) {
  blocks_.clear();
  for (std::size_t part = 0; part < tensors_.size(); ++part) {
    if (shape_.exact) {
      cut_exact_blocks(part);
    } else {
      cut_blocks(part, led);
    }
  }
  return blocks_;
}

void ScaleComBucket::cut_blocks(std::size_t index, const ChunkRange& led) {
  const BucketShape::Part& part = shape_.parts[index];
  const layout::Cut& cut = part.cut;
  const std::int64_t chunks = cut.chunks();
  const std::int64_t stride = std::max<std::int64_t>(1, kBlockElements / cut.chunk);
  for (std::int64_t first = 0; first < chunks;) {
    std::int64_t last = std::min(chunks, first + stride);
    for (const std::int64_t edge : {led.first - part.first_chunk, led.last - part.first_chunk}) {
      if (edge > first && edge < last) last = edge;
    }
    blocks_.push_back({index, first * cut.chunk, std::min(cut.length, last * cut.chunk),
                       part.first_item + cut.kept_before(first),
                       part.first_item + cut.kept_before(last),
                       led.contains(part.first_chunk + first)});
    first = last;
  }
}

void ScaleComBucket::cut_exact_blocks(std::size_t index) {
  const std::int64_t length = shape_.parts[index].length;
  const std::uint32_t* items = positions_.data() + first_items_[index];
  const std::uint32_t* items_end = positions_.data() + first_items_[index + 1];
  for (std::int64_t begin = 0; begin < length; begin += kBlockElements) {
    const std::int64_t end = std::min(length, begin + kBlockElements);
    const std::uint32_t* next = std::lower_bound(items, items_end, end);
    blocks_.push_back(
        {index, begin, end, items - positions_.data(), next - positions_.data(), false});
    items = next;
  }
}

kernels::Taken ScaleComBucket::taken(std::int64_t first_item) {
  return {positions_.data() + first_item, message_.data() + first_item,
          before_.data() + first_item};
}

std::span<std::byte> ScaleComBucket::packed(std::int64_t bytes) {
  if (packed_.size() < bytes) packed_ = core::AlignedArray<std::byte>(bytes);
  return {packed_.data(), static_cast<std::size_t>(bytes)};
}

void ScaleComBucket::put_back() {
  for (std::size_t part = 0; part < tensors_.size(); ++part) {
    for (std::int64_t i = first_items_[part]; i < first_items_[part + 1]; ++i) {
      tensors_[part].memory[positions_[i]] = before_[i];
    }
  }
  sent_ = false;
}

}  // namespace scalecom::methods
