#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scalecom/core/buffer.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/lowrank.h"

namespace scalecom::kernels::cuda::lowrank {
class Batch;
}

namespace scalecom::kernels::lowrank {

/// All jobs of a bucket, of one rank, with their arrays on one device: what the functions of
/// lowrank.h do, there. On a GPU every call takes its place in the stream; sums are then taken in
/// another order than on the CPU, the same in every run.
class Batch {
 public:
  /// The arrays that the jobs name stay where they are as long as this lives. Waits for a GPU.
  Batch(std::vector<Job> jobs, const core::Stream& stream);
  ~Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;

  /// start_q is drawn from the seed and the job's key.
  void draw_q(std::uint64_t seed, const core::Stream& stream);
  void adopt_q(const core::Stream& stream);
  void accumulate(const core::Buffer& grad, Flag* flag, const core::Stream& stream);
  void orthonormalise_p(const core::Stream& stream);
  void project(const core::Stream& stream);
  void average_q(float factor, Flag* flag, const core::Stream& stream);
  void expand(const core::Buffer& grad, const Flag* flag, const core::Stream& stream);
  void settle(const core::Stream& stream);

 private:
  std::vector<Job>& bound_to(const core::Buffer& grad);

  std::vector<Job> jobs_;
  std::unique_ptr<cuda::lowrank::Batch> on_device_;  // null on the CPU
};

}  // namespace scalecom::kernels::lowrank
