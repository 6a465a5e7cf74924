#include "scalecom/methods/scalecom/cuda/bucket.h"

#include <algorithm>
#include <optional>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/cuda/step.h"
#include "scalecom/methods/scalecom/host/offsets.h"

namespace scalecom::methods::scalecom::cuda {
namespace {

namespace kernels_cuda = kernels::cuda;
using Kind = layout::Selection::Kind;

kernels_cuda::Shape kernel_shape(const Shape& shape, const layout::Selection& selection) {
  kernels_cuda::Shape out;
  out.selection = selection;
  for (const Shape::Part& part : shape.parts) {
    layout::Cut cut = part.cut;
    cut.length = part.length;
    out.parts.push_back({part.offset, cut, part.first_chunk, part.first_item,
                         core::hash(part.tensor), part.chunks_before, nullptr});
  }
  for (const Shape::DensePart& part : shape.dense_parts) {
    out.dense.push_back({part.offset, part.length, part.place});
  }
  out.elements = shape.compressed_elements + shape.dense_elements;
  out.compressed_elements = shape.compressed_elements;
  out.dense_elements = shape.dense_elements;
  out.chunks = shape.chunks;
  out.items = shape.items;
  return out;
}

// Device memory for a bucket of this shape, with memories that are new. Slots of sharded leaders
// take a little more, and are made later.
std::int64_t needed_bytes(const Shape& shape, const kernels_cuda::Shape& kernel,
                          MemoryStore& memories) {
  std::int64_t bytes = kernels_cuda::Bucket::scratch_bytes(kernel) + shape.offset_bytes() +
                       4 * (3 * shape.items + shape.dense_elements);
  for (const Shape::Part& part : shape.parts) {
    if (memories.find(part.name, part.length) == nullptr) bytes += 4 * part.length;
  }
  return bytes;
}

// Before anything is made, so that a bucket that does not fit leaves nothing behind.
void check_room(const Shape& shape, const kernels_cuda::Shape& kernel, MemoryStore& memories) {
  constexpr std::int64_t kMebi = std::int64_t{1} << 20;
  const std::int64_t needed = needed_bytes(shape, kernel, memories);
  const core::cuda::MemoryInfo info = core::cuda::memory_info(memories.device());
  if (needed <= info.free) return;
  throw core::DeviceError(
      core::concat("[scalecom] a bucket of ", kernel.elements, " elements needs ",
                   (needed + kMebi - 1) / kMebi, " MiB on ", core::to_string(memories.device()),
                   ", and ", info.free / kMebi, " of ", info.total / kMebi, " MiB are free"));
}

class CudaBucket final : public Bucket {
 public:
  CudaBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories,
             kernels_cuda::Shape shape);

  void first_pass() override;
  void take() override;
  void finish(float factor, const NarrowMean* narrow) override;
  bool was_sent() override;
  void put_back(const std::int32_t* condition) override;
  void forget_sent() override;
  void replayed(std::int64_t steps) override;
  View view() override;

 protected:
  void on_begin() override;

 private:
  kernels_cuda::Naming naming() const;
  template <typename T>
  void download(const T* from, std::vector<T>& to, std::int64_t count);

  core::Device device_;
  kernels_cuda::Shape kernel_shape_;
  core::Array<std::byte> scratch_;
  core::Array<std::int64_t> number_;  // of the step, for the kernels
  core::Array<std::int32_t> sent_;
  std::optional<kernels_cuda::Bucket> kernels_;
  kernels_cuda::Step step_;
  std::int64_t device_step_ =
      -1;               // what number_ will be once all that was put on the stream is done
  float factor_ = 1;    // of the last finish()
  bool named_ = false;  // whether the offsets are those of this step

  // Host copies for view().
  struct Copies {
    std::vector<std::byte> grad;
    std::vector<std::vector<float>> memories;
    std::vector<std::uint32_t> positions;
    std::vector<float> values;
    std::vector<std::byte> packed;
  } copies_;
};

CudaBucket::CudaBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories,
                       kernels_cuda::Shape shape)
    : Bucket(layout, options, memories.device()),
      device_(memories.device()),
      kernel_shape_(std::move(shape)) {
  if (shape_.items == 0) return;
  scratch_ = core::Array<std::byte>(device_, kernels_cuda::Bucket::scratch_bytes(kernel_shape_));
  number_ = core::Array<std::int64_t>(device_, 1);
  sent_ = core::Array<std::int32_t>(device_, 1);
  for (std::size_t i = 0; i < shape_.parts.size(); ++i) {
    kernel_shape_.parts[i].d_memory = memories.of(shape_.parts[i].name, shape_.parts[i].length);
  }
}

void CudaBucket::on_begin() {
  if (shape_.items == 0) return;
  if (!kernels_) kernels_.emplace(kernel_shape_, scratch_.data(), stream_);
  // A step that is captured finds the number that the one before it left.
  if (device_step_ != step() && !core::cuda::is_capturing(stream_)) {
    const std::int64_t now = step();
    core::cuda::copy(number_.data(), &now, sizeof now, stream_);
  }
  device_step_ = step();
  factor_ = 1;
  named_ = false;
  step_.d_grad = grad_.data;
  step_.dtype = grad_.dtype;
  step_.filter = options_.filter();
  step_.values = options_.value_type();
  step_.naming = naming();
  step_.rank = turn_.rank;
  step_.size = turn_.size;
  step_.seed = static_cast<std::uint64_t>(options_.seed);
  step_.d_step = number_.data();
  step_.d_positions = positions_.data();
  step_.d_before = before_.data();
  step_.d_message = message_.data();
  step_.d_packed = packed_.data();
  step_.slot_bytes = sharded() ? static_cast<std::int64_t>(own_offsets().size()) : 0;
  step_.d_sent = sent_.data();
}

kernels_cuda::Naming CudaBucket::naming() const {
  if (!options_.sends_offsets()) return kernels_cuda::Naming::kNone;
  if (sharded()) return kernels_cuda::Naming::kShare;
  return turn_.leads() ? kernels_cuda::Naming::kAll : kernels_cuda::Naming::kNone;
}

void CudaBucket::first_pass() {
  kernels_->first_pass(step_, stream_);
}

void CudaBucket::take() {
  named_ = true;
  const bool nothing_to_take = !options_.sends_offsets() ||
                               step_.naming == kernels_cuda::Naming::kAll ||
                               (sharded() && turn_.size == 1);
  if (!nothing_to_take) kernels_->take(step_, stream_);
}

void CudaBucket::finish(float factor, const NarrowMean* narrow) {
  factor_ = factor;
  kernels_->finish(step_, factor, stream_);
  ++device_step_;
  if (narrow == nullptr) return;
  kernels_->settle_rounding(step_, narrow->owned().begin, narrow->owned().size(),
                            narrow->rounding(), stream_);
}

bool CudaBucket::was_sent() {
  if (shape_.items == 0) return false;
  std::int32_t sent = 0;
  core::cuda::copy(&sent, sent_.data(), sizeof sent, stream_);
  core::cuda::synchronize(stream_);
  return sent != 0;
}

void CudaBucket::put_back(const std::int32_t* condition) {
  if (kernels_) kernels_->put_back(step_, condition, stream_);
}

void CudaBucket::forget_sent() {
  if (kernels_) core::cuda::set_zero(sent_.data(), sizeof(std::int32_t), stream_);
}

void CudaBucket::replayed(std::int64_t steps) {
  if (step() < 0) return;  // it had none
  Bucket::replayed(steps);
  device_step_ = steps;
}

template <typename T>
void CudaBucket::download(const T* from, std::vector<T>& to, std::int64_t count) {
  to.resize(static_cast<std::size_t>(count));
  core::cuda::copy(to.data(), from, count * static_cast<std::int64_t>(sizeof(T)), stream_);
}

Bucket::View CudaBucket::view() {
  download(static_cast<const std::byte*>(grad_.data), copies_.grad,
           grad_.elements * core::size_of(grad_.dtype));
  download(positions_.data(), copies_.positions, shape_.items);
  download(message_.data(), copies_.values, shape_.items);
  if (shape_.exact && named_) download(packed_.data(), copies_.packed, shape_.offset_bytes());
  copies_.memories.resize(shape_.parts.size());
  for (std::size_t i = 0; i < shape_.parts.size(); ++i) {
    download<float>(kernel_shape_.parts[i].d_memory, copies_.memories[i], shape_.parts[i].length);
  }
  core::cuda::synchronize(stream_);

  View view;
  for (std::size_t i = 0; i < shape_.parts.size(); ++i) {
    const Shape::Part& part = shape_.parts[i];
    view.tensors.push_back({copies_.grad.data() + part.offset * core::size_of(grad_.dtype),
                            grad_.dtype, copies_.memories[i].data(), part.length});
    view.first_items.push_back(part.first_item);
  }
  view.first_items.push_back(shape_.items);
  // How many items a part has in this step, only the offsets that crossed the network tell here.
  if (shape_.exact && named_) {
    host::unpack_exact(shape_, copies_.packed, copies_.positions.data(), view.first_items);
  }
  if (factor_ != 1.0F) {
    for (float& value : copies_.values) value *= factor_;
  }
  view.positions = copies_.positions.data();
  view.values = copies_.values;
  return view;
}

}  // namespace

std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout, const Options& options,
                                    MemoryStore& memories) {
  const Shape shape(layout, options.select);
  kernels_cuda::Shape kernel = kernel_shape(shape, options.select);
  if (shape.items > 0) check_room(shape, kernel, memories);
  return std::make_unique<CudaBucket>(layout, options, memories, std::move(kernel));
}

}  // namespace scalecom::methods::scalecom::cuda
