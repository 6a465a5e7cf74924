#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/narrow_mean.h"
#include "scalecom/methods/scalecom/options.h"
#include "scalecom/methods/scalecom/shape.h"
#include "scalecom/methods/scalecom/turn.h"

namespace scalecom::methods::scalecom {

/// A bucket of one layout at one rank, from step to step: its shape, the memories of its tensors,
/// the arrays that hold what was last sent, and all that a rank does to them by itself. Where it
/// lies, host/ or cuda/ does the work. Between these calls the method lets offsets and message
/// cross the network:
///     begin, first_pass, [offsets], take, [message], finish
class Bucket {
 public:
  virtual ~Bucket() = default;
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  /// Room for the offsets of so many ranks, which is otherwise made by the first step.
  void reserve(int ranks);

  /// A new step: the gradient is bound, and what was sent in the last one can no longer come back.
  /// The stream is that of all the work up to finish().
  void begin(const core::Buffer& grad, const Turn& turn, const core::Stream& stream);

  /// Brings the memories up to date, names the entries that are this rank's to name and packs their
  /// offsets into its own part of offsets(). Takes what can be taken already, and loads the dense
  /// slices, divided by the number of ranks, and the flag into the message.
  virtual void first_pass() = 0;
  /// With everybody's offsets in place: the entries that others named go from the memory into the
  /// message. PeerError where what arrived cannot be offsets, or, on a GPU, a bucket that comes out
  /// NaN.
  virtual void take() = 0;
  /// The message is a sum over ranks, whose values times `factor` are their mean: it becomes the
  /// gradient. Where `narrow` is given, what rounding the mean took from the sum goes back into the
  /// memory of this rank's part. Where anything is not finite, the gradient becomes NaN and the
  /// memories are put back.
  virtual void finish(float factor, const NarrowMean* narrow) = 0;
  /// Whether the last step was sent, and neither refused nor put back. Waits for a GPU.
  virtual bool was_sent() = 0;
  /// The memories as if nothing had been sent, where something was; and, where a condition is
  /// given, a number on the stream's device, only if that is not 0.
  virtual void put_back(const std::int32_t* condition = nullptr) = 0;
  /// What was sent can no longer be put back.
  virtual void forget_sent() = 0;
  /// After captured steps were replayed: `steps` are done.
  virtual void replayed(std::int64_t steps) {
    if (step() >= 0) turn_.step = steps - 1;
  }

  /// What the books of check=conserve look at, in host memory: the gradient, the memories and, from
  /// take() on, the items in their order by part. Waits for a GPU.
  struct View {
    std::vector<kernels::Tensor> tensors;
    std::vector<std::int64_t> first_items;  ///< of each part, and the end of the last
    const std::uint32_t* positions = nullptr;
    std::span<const float> values;  ///< of the message; the mean after finish()
  };
  virtual View view() = 0;

  const Shape& shape() const { return shape_; }
  const Turn& turn() const { return turn_; }
  std::int64_t step() const { return turn_.step; }
  const core::Stream& stream() const { return stream_; }

  /// Everybody's offsets. With sharded leaders a slot of slot_bytes() a rank, one after the other.
  std::span<std::byte> offsets() { return packed_.span().first(offset_bytes_); }
  /// This rank's part of them.
  std::span<std::byte> own_offsets() { return slot(turn_.rank); }
  /// [values of all items | dense slices | flag], as it is summed.
  std::span<float> message() { return message_.span(); }
  std::span<float> values() { return message().first(static_cast<std::size_t>(shape_.items)); }
  /// [dense slices | flag]
  std::span<float> rest() { return message().subspan(static_cast<std::size_t>(shape_.items)); }

 protected:
  /// DeviceError where the device has too little memory; then nothing has changed.
  Bucket(const layout::Layout& layout, const Options& options, core::Device device);

  virtual void on_begin() = 0;
  bool sharded() const { return options_.leaders == Options::kSharded; }
  std::span<std::byte> slot(int rank);
  ChunkRange led_by(int rank) const {
    return led_chunks(shape_, options_, {rank, turn_.size, step()});
  }
  ChunkRange led() const { return led_by(turn_.rank); }

  const Options options_;
  const Shape shape_;
  core::Buffer grad_;
  core::Stream stream_;
  Turn turn_{0, 1, -1};
  core::Array<std::uint32_t> positions_;
  core::Array<float> before_;
  core::Array<float> message_;
  core::Array<std::byte> packed_;

 private:
  std::size_t offset_bytes_ = 0;
  std::int64_t slot_bytes_ = 0;
  int slots_ = 0;
};

/// A bucket where the memories lie. `options` with warm-up steps over are those of the method.
std::unique_ptr<Bucket> make_bucket(const layout::Layout& layout, const Options& options,
                                    MemoryStore& memories);

}  // namespace scalecom::methods::scalecom
