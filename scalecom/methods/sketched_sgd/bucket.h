#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/kernels/sketch.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/dense_slices.h"
#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/sketched_sgd/options.h"

namespace scalecom::methods::sketched_sgd {

/// The sizes of a bucket's two messages. They follow from the layout and the options alone.
struct Sizes {
  /// UsageError where the sketch has fewer columns than values are kept, or more than there may be.
  Sizes(const layout::Layout& layout, const Options& options);

  std::int64_t elements = 0;  ///< of the compressed slices
  std::int64_t dense = 0;
  std::int64_t kept = 0;  ///< k
  std::int64_t candidates = 0;
  kernels::sketch::Size sketch{.rows = 0};

  /// [sketch | dense slices | flag]
  std::int64_t first_message() const { return sketch.counters() + dense + 1; }
};

/// A bucket of one layout at one rank, from step to step, and all that the rank does by itself.
/// Between these calls the messages are summed over ranks:
///     accumulate, [first], choose, [second], finish
class Bucket {
 public:
  /// `velocities` hold u, where there is momentum.
  Bucket(const layout::Layout& layout, const Options& options, MemoryStore& memories,
         MemoryStore& velocities);

  const Sizes& sizes() const { return sizes_; }
  const DenseSlices& dense() const { return dense_; }
  std::span<float> first() { return {first_.data(), static_cast<std::size_t>(first_.size())}; }
  std::span<float> second() { return {second_.data(), static_cast<std::size_t>(second_.size())}; }

  /// u and v are brought up to date and sketched; dense slices times `factor`, with what `memories`
  /// hold of them, and the flag go into the first message.
  void accumulate(const core::Buffer& grad, float factor, MemoryStore& memories);
  /// Finds the candidates in the summed sketch and puts this rank's values of them into the second
  /// message. Returns whether all of the first was finite.
  bool choose();
  /// The largest of the summed candidates, times `factor`, and the dense slices become the
  /// gradient, and are no longer in the memories. Returns whether all was finite; if not, nothing
  /// has changed.
  bool finish(const core::Buffer& grad, float factor);
  /// The memories as if nothing had been sent.
  void put_back();
  void forget_sent();

  std::int64_t step = -1;

 private:
  struct Part {
    std::int64_t offset = 0;  ///< in the bucket
    std::int64_t first = 0;   ///< among the compressed elements
    std::int64_t length = 0;
    float* v = nullptr;
    float* u = nullptr;  ///< null without momentum
  };
  struct DenseVelocity {
    float* u = nullptr;  ///< null without momentum
    std::int64_t length = 0;
  };
  struct Sent {
    float* v;
    float* u;
    float v_before;
    float u_before;
  };

  bool add_gradient(const core::Buffer& grad, const Part& part);
  bool load_dense(const core::Buffer& grad, float factor, float* dense);
  std::vector<std::size_t> largest() const;
  const Part& part_of(std::int64_t position) const;

  const Sizes sizes_;
  const float momentum_;
  std::vector<Part> parts_;
  DenseSlices dense_;
  std::vector<DenseVelocity> dense_velocities_;  // of each dense slice
  std::vector<float> dense_velocities_before_;
  core::AlignedArray<float> first_;
  core::AlignedArray<float> second_;
  core::AlignedArray<float> estimates_;
  std::vector<std::uint32_t> positions_;
  std::vector<Sent> sent_;
};

}  // namespace scalecom::methods::sketched_sgd
