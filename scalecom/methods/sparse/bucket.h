#pragma once

#include <cstdint>
#include <span>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/core/stream.h"
#include "scalecom/methods/sparse/shape.h"

namespace scalecom::methods::sparse {

/// A bucket of one layout at one rank, from step to step: the arrays that hold what was last sent,
/// and all that a rank does with them. A step is
///     begin, compress, [rest() is summed over ranks], exchange, finish
class Bucket {
 public:
  virtual ~Bucket() = default;
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  /// Makes room for all that a step of these ranks takes, as far as it does not depend on the data.
  virtual void reserve(core::DType /*dtype*/, int /*ranks*/, const core::Stream& /*stream*/) {}
  /// A new step: the gradient is bound, and what was sent in the last one can no longer come back.
  void begin(const core::Buffer& grad, int ranks, std::int64_t step, const core::Stream& stream);

  /// Brings the memories up to date and takes out what this rank sends. Loads the dense slices,
  /// divided by the number of ranks, and the flag into rest().
  virtual void compress() = 0;
  /// What was taken out crosses the network.
  virtual void exchange(comm::Communicator& communicator) = 0;
  /// The gradient becomes the mean. Where rest() or the mean is not finite, it becomes NaN, and the
  /// memories are put back.
  virtual void finish() = 0;
  /// Whether the last step was sent, and neither refused nor put back. Waits for a GPU.
  virtual bool was_sent() = 0;
  /// The memories as if nothing had been sent, where something was.
  virtual void put_back() = 0;
  /// What was sent can no longer be put back.
  virtual void forget_sent() = 0;

  /// After captured steps were replayed: `steps` are done.
  void replayed(std::int64_t steps) {
    if (step_ >= 0) step_ = steps - 1;
  }

  const Shape& shape() const { return shape_; }
  std::int64_t step() const { return step_; }
  const core::Stream& stream() const { return stream_; }
  /// [dense slices | flag]: the flag is over 0 where some rank's gradient was not finite.
  virtual std::span<float> rest() = 0;

 protected:
  explicit Bucket(const layout::Layout& layout) : shape_(layout) {}

  const Shape shape_;
  core::Buffer grad_;
  core::Stream stream_;
  int ranks_ = 1;
  std::int64_t step_ = -1;
};

/// What the buckets in host memory have in common.
class HostBucket : public Bucket {
 public:
  void finish() final;
  bool was_sent() final { return sent_; }
  void put_back() final;
  void forget_sent() final { sent_ = false; }
  std::span<float> rest() final { return rest_.span(); }

 protected:
  explicit HostBucket(const layout::Layout& layout);

  /// The dense slices times `factor`, in rest(). Returns whether that is finite.
  bool load_dense(float factor);
  /// At the end of compress(): whether all of it was finite.
  void set_flag(bool finite);
  float mean_factor() const { return 1.0F / static_cast<float>(ranks_); }

  /// The compressed slices of the gradient become the mean. Returns whether that is finite.
  virtual bool put_items() = 0;
  /// What compress() and put_items() took from the memories, or gave to them, goes back.
  virtual void put_back_items() = 0;

 private:
  bool rest_is_finite();

  bool sent_ = false;
  core::Array<float> rest_;
};

}  // namespace scalecom::methods::sparse
