#include <optional>

#include "scalecom/core/hash.h"
#include "scalecom/kernels/cuda/step.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/methods/sparse/cuda/gathered_mean.h"
#include "scalecom/methods/sparse/largest_bucket.h"
#include "scalecom/methods/topk/bucket.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::methods::topk {
namespace {

namespace kernels_cuda = kernels::cuda;
using Kind = layout::Selection::Kind;
using sparse::Shape;

// A longer tensor is selected from by all of the GPU, in some launches of its own; shorter ones
// together, by a block of threads each.
constexpr std::int64_t kLongest = std::int64_t{1} << 18;

// Tensors that are selected from together: ScaleCom's kernels, for which each tensor is one chunk.
class Group {
 public:
  Group(Kind kind, core::Device device) : device_(device) { shape_.selection.kind = kind; }

  void add(const Shape::Part& part, float* d_memory) {
    const std::int64_t keep = part.keep();
    shape_.parts.push_back({part.offset,
                            {part.length, part.length, keep, 0},
                            shape_.chunks,
                            shape_.items,
                            core::hash(part.name),
                            0,
                            d_memory});
    shape_.compressed_elements += part.length;
    shape_.items += keep;
    shape_.chunks += 1;
    packed_bytes_ += wire::packed_bytes(keep, wire::offset_bits(part.length));
  }
  void add(const Shape::DensePart& part) {
    shape_.dense.push_back({part.offset, part.length, part.place});
    shape_.dense_elements += part.length;
  }
  // Once all is added.
  void make_arrays() {
    shape_.elements = shape_.compressed_elements + shape_.dense_elements;
    scratch_ = core::Array<std::byte>(device_, kernels_cuda::Bucket::scratch_bytes(shape_));
    positions_ = core::Array<std::uint32_t>(device_, shape_.items);
    before_ = core::Array<float>(device_, shape_.items);
    message_ = core::Array<float>(device_, shape_.items + shape_.dense_elements + 1);
    packed_ = core::Array<std::byte>(device_, packed_bytes_);
    number_ = core::Array<std::int64_t>(device_, 1);
  }

  // u = m + grad, of which the largest are taken.
  void compress(const core::Buffer& grad, int ranks, const core::Stream& stream) {
    if (!kernels_) kernels_.emplace(shape_, scratch_.data(), stream);
    step_.d_grad = grad.data;
    step_.dtype = grad.dtype;
    step_.naming = kernels_cuda::Naming::kAll;
    step_.size = ranks;
    step_.d_step = number_.data();
    step_.d_positions = positions_.data();
    step_.d_before = before_.data();
    step_.d_message = message_.data();
    step_.d_packed = packed_.data();
    kernels_->first_pass(step_, stream);
  }

  // What was taken goes back where `d_condition` is not 0, which then becomes 0.
  void put_back(std::int32_t* d_condition, const core::Stream& stream) {
    if (!kernels_) return;
    step_.d_sent = d_condition;
    kernels_->put_back(step_, nullptr, stream);
  }

  const kernels_cuda::Shape& shape() const { return shape_; }
  std::span<const float> values() {
    return message_.span().first(static_cast<std::size_t>(shape_.items));
  }
  // [dense slices | flag]
  std::span<float> rest() {
    return message_.span().subspan(static_cast<std::size_t>(shape_.items));
  }
  std::span<const std::byte> packed() const { return packed_.span(); }

 private:
  core::Device device_;
  kernels_cuda::Shape shape_;
  std::int64_t packed_bytes_ = 0;
  core::Array<std::byte> scratch_;
  core::Array<std::uint32_t> positions_;
  core::Array<float> before_;
  core::Array<float> message_;
  core::Array<std::byte> packed_;
  core::Array<std::int64_t> number_;  // of the step, for which no kernel asks here
  std::optional<kernels_cuda::Bucket> kernels_;
  kernels_cuda::Step step_;
};

class CudaBucket final : public sparse::Bucket {
 public:
  CudaBucket(const layout::Layout& layout, MemoryStore& memories);

  void reserve(core::DType dtype, int ranks, const core::Stream& stream) override;
  void compress() override;
  void exchange(comm::Communicator& communicator) override;
  void finish() override;
  bool was_sent() override { return mean_.was_sent(stream_); }
  void put_back() override { put_back_where(mean_.d_sent()); }
  void forget_sent() override {
    if (stream_.device().is_cuda()) mean_.forget_sent(stream_);
  }
  std::span<float> rest() override { return groups_.front().rest(); }

 private:
  void place_groups();
  void put_back_where(std::int32_t* d_condition);
  std::span<std::byte> message(int rank) {
    return messages_.span().subspan(static_cast<std::size_t>(rank * message_bytes_),
                                    static_cast<std::size_t>(message_bytes_));
  }

  std::vector<Group> groups_;  // the first has the short tensors and the dense ones
  std::int64_t items_ = 0;
  std::int64_t message_bytes_ = 0;
  std::vector<kernels_cuda::GatheredPart> parts_;
  core::Array<kernels_cuda::GatheredPart> d_parts_;
  core::Array<std::byte> messages_;  // of all ranks
  core::Array<std::int32_t> condition_;
  sparse::cuda::GatheredMean mean_;
};

CudaBucket::CudaBucket(const layout::Layout& layout, MemoryStore& memories)
    : Bucket(layout),
      message_bytes_(wire::items_bytes(sparse::largest_runs(shape_))),
      condition_(memories.device(), 1),
      mean_(memories.device(), layout.elements()) {
  const core::Device device = memories.device();
  groups_.emplace_back(Kind::kTop, device);
  for (const Shape::DensePart& part : shape_.dense_parts) groups_.front().add(part);
  for (const Shape::Part& part : shape_.parts) {
    float* const d_memory = memories.of(part.name, part.length);
    if (part.length <= kLongest) {
      groups_.front().add(part, d_memory);
    } else {
      groups_.emplace_back(Kind::kExact, device).add(part, d_memory);
    }
  }
  for (Group& group : groups_) group.make_arrays();
  place_groups();
}

// A message has the values of all groups, then their offsets.
void CudaBucket::place_groups() {
  for (const Group& group : groups_) items_ += group.shape().items;
  std::int64_t first_item = 0;
  std::int64_t first_byte = items_ * static_cast<std::int64_t>(sizeof(float));
  for (const Group& group : groups_) {
    for (const kernels_cuda::Part& part : group.shape().parts) {
      parts_.push_back({part.offset, part.cut.length, first_item, part.cut.keep, first_byte});
      first_item += part.cut.keep;
      first_byte += wire::packed_bytes(part.cut.keep, wire::offset_bits(part.cut.length));
    }
  }
}

void CudaBucket::reserve(core::DType dtype, int ranks, const core::Stream& stream) {
  mean_.reserve(dtype);
  if (parts_.empty() || messages_.size() == message_bytes_ * ranks) return;
  const auto parts = static_cast<std::int64_t>(parts_.size());
  messages_ = core::Array<std::byte>(stream.device(), message_bytes_ * ranks);
  d_parts_ = core::Array<kernels_cuda::GatheredPart>(stream.device(), parts);
  core::cuda::copy(d_parts_.data(), parts_.data(),
                   parts * static_cast<std::int64_t>(sizeof(parts_[0])), stream);
}

void CudaBucket::compress() {
  for (Group& group : groups_) group.compress(grad_, ranks_, stream_);
  // One flag for all.
  for (std::size_t i = 1; i < groups_.size(); ++i) {
    kernels::elementwise::add_quotient(&rest().back(), &groups_[i].rest().back(), 1, 1.0F, 1.0F,
                                       stream_);
  }
}

void CudaBucket::exchange(comm::Communicator& communicator) {
  if (shape_.parts.empty()) return;
  const std::span<std::byte> own = message(communicator.rank());
  std::byte* to = own.data();
  const auto append = [&](std::span<const std::byte> bytes) {
    core::cuda::copy(to, bytes.data(), static_cast<std::int64_t>(bytes.size()), stream_);
    to += bytes.size();
  };
  for (Group& group : groups_) append(std::as_bytes(group.values()));
  for (Group& group : groups_) append(group.packed());
  communicator.all_gather(own, messages_.span(), stream_);
}

void CudaBucket::finish() {
  std::vector<sparse::cuda::Message> arrived;
  for (int rank = 0; rank < ranks_ && !parts_.empty(); ++rank) {
    arrived.push_back({d_parts_.data(), d_parts_.size(), items_, message(rank).data()});
  }
  mean_(grad_, shape_, arrived, rest(), 1.0F / static_cast<float>(ranks_), stream_);
  put_back_where(mean_.d_refused());
}

// Every group's kernels clear the condition when they are done.
void CudaBucket::put_back_where(std::int32_t* d_condition) {
  for (Group& group : groups_) {
    core::cuda::copy(condition_.data(), d_condition, sizeof(std::int32_t), stream_);
    group.put_back(condition_.data(), stream_);
  }
  core::cuda::set_zero(d_condition, sizeof(std::int32_t), stream_);
}

}  // namespace

std::unique_ptr<sparse::Bucket> make_cuda_bucket(const layout::Layout& layout,
                                                 MemoryStore& memories) {
  return std::make_unique<CudaBucket>(layout, memories);
}

}  // namespace scalecom::methods::topk
