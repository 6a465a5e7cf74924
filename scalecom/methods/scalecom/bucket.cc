#include "scalecom/methods/scalecom/bucket.h"

#include "scalecom/core/error.h"
#include "scalecom/methods/scalecom/cuda/bucket.h"
#include "scalecom/methods/scalecom/host/bucket.h"

namespace scalecom::methods::scalecom {

Bucket::Bucket(const layout::Layout& layout, const Options& options, core::Device device)
    : options_(options), shape_(layout, options.select) {
  if (shape_.items == 0) return;  // all dense: summed where it lies
  positions_ = core::Array<std::uint32_t>(device, shape_.items);
  before_ = core::Array<float>(device, shape_.items);
  message_ = core::Array<float>(device, shape_.items + shape_.dense_elements + 1);
}

void Bucket::begin(const core::Buffer& grad, const Turn& turn, const core::Stream& stream) {
  grad_ = grad;
  turn_ = turn;
  stream_ = stream;
  reserve(turn.size);
  on_begin();
}

void Bucket::reserve(int ranks) {
  const int slots = sharded() ? ranks : 1;
  if (shape_.items == 0 || !options_.sends_offsets() || slots_ == slots) return;
  const std::int64_t bytes = sharded() ? slot_bytes(shape_, slots) : shape_.offset_bytes();
  if (packed_.size() < bytes * slots) {
    packed_ = core::Array<std::byte>(positions_.device(), bytes * slots);
  }
  slots_ = slots;
  slot_bytes_ = bytes;
  offset_bytes_ = static_cast<std::size_t>(bytes * slots);
}

std::span<std::byte> Bucket::slot(int rank) {
  const std::int64_t begin = sharded() ? rank * slot_bytes_ : 0;
  return packed_.span().subspan(static_cast<std::size_t>(begin),
                                static_cast<std::size_t>(slot_bytes_));
}

std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout, const Options& options,
                                    MemoryStore& memories) {
  if (memories.device().is_cuda()) return cuda::make_bucket(layout, options, memories);
  return host::make_bucket(layout, options, memories);
}

}  // namespace scalecom::methods::scalecom
