#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/bucket_shape.h"
#include "scalecom/methods/memory_store.h"

namespace scalecom::methods {

/// A bucket of one layout at one rank, from step to step: its shape, the memories of its tensors,
/// and the arrays that hold what was last sent.
class ScaleComBucket {
 public:
  /// A piece of work for one thread: elements [begin, end) of a part, and their items.
  struct Block {
    std::size_t part = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t first_item = 0;
    std::int64_t last_item = 0;
    bool led = false;  ///< this rank names its entries

    std::int64_t items() const { return last_item - first_item; }
  };

  ScaleComBucket(const layout::Layout& layout, const layout::Selection& selection,
                 MemoryStore& memories);

  /// A new step: the gradient is bound, and what was sent in the last one can no longer come back.
  void begin(const core::Buffer& grad, std::int64_t step);

  const BucketShape& shape() const { return shape_; }
  const core::Buffer& grad() const { return grad_; }
  std::int64_t step() const { return step_; }
  /// The tensor of each of the shape's parts.
  std::span<kernels::Tensor> tensors() { return tensors_; }
  /// Where a part's items begin, and how many they are: the shape's, or what was selected last.
  std::int64_t first_item(std::size_t part) const { return first_items_[part]; }
  std::int64_t items(std::size_t part) const { return first_items_[part + 1] - first_items_[part]; }
  /// For an exact selection: how many items each part has in this step.
  void set_items(std::span<const std::int64_t> counts);

  /// All compressed elements in blocks of whole chunks, none of them partly in `led`; for an exact
  /// selection blocks of elements, with the items selected last.
  const std::vector<Block>& blocks(const ChunkRange& led);

  /// The items from `first_item` on: an array each, as kernels take them.
  kernels::Taken taken(std::int64_t first_item);
  /// [values of all items | dense slices | flag], as it is summed.
  std::span<float> message() {
    return {message_.data(), static_cast<std::size_t>(message_.size())};
  }
  std::span<float> values() { return message().first(static_cast<std::size_t>(shape_.items)); }
  /// [dense slices | flag]
  std::span<float> rest() { return message().subspan(static_cast<std::size_t>(shape_.items)); }
  /// Room for packed offsets, kept between steps.
  std::span<std::byte> packed(std::int64_t bytes);

  /// What was sent can be taken back until the next step begins.
  void mark_sent() { sent_ = true; }
  bool was_sent() const { return sent_; }
  /// The memories as if nothing had been sent.
  void put_back();

 private:
  void cut_blocks(std::size_t part, const ChunkRange& led);
  void cut_exact_blocks(std::size_t part);

  const BucketShape shape_;
  std::vector<kernels::Tensor> tensors_;
  std::vector<std::int64_t> first_items_;  // of each part, and the end of the last
  std::vector<Block> blocks_;
  core::AlignedArray<std::uint32_t> positions_;
  core::AlignedArray<float> before_;
  core::AlignedArray<float> message_;
  core::AlignedArray<std::byte> packed_;

  core::Buffer grad_;
  std::int64_t step_ = -1;
  bool sent_ = false;
};

}  // namespace scalecom::methods
