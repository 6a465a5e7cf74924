#pragma once

#include <cstdint>
#include <span>

#include "scalecom/core/array.h"
#include "scalecom/core/buffer.h"
#include "scalecom/kernels/lowrank.h"

/// kernels/lowrank.h on a CUDA stream: one launch a call, over all matrices of a bucket.
namespace scalecom::kernels::cuda::lowrank {

using kernels::lowrank::Flag;
using kernels::lowrank::Job;
using kernels::lowrank::kMost;

/// A job, and its places in the scratch that all share.
struct DeviceJob {
  Job job;
  std::int64_t doubles = 0;
  std::int64_t partial = 0;
};

/// kernels::lowrank::Batch on a GPU, where every function is described.
class Batch {
 public:
  Batch(std::span<const Job> jobs, const core::Stream& stream);

  void draw_q(std::uint64_t seed, const core::Stream& stream);
  void adopt_q(const core::Stream& stream);
  void accumulate(const core::Buffer& grad, Flag* d_flag, const core::Stream& stream);
  void orthonormalise_p(const core::Stream& stream);
  void project(const core::Stream& stream);
  void average_q(float factor, Flag* d_flag, const core::Stream& stream);
  void expand(const core::Buffer& grad, const Flag* d_flag, const core::Stream& stream);
  void settle(const core::Stream& stream);

 private:
  std::int64_t rank_ = 1;
  std::int64_t jobs_ = 0;
  std::int64_t most_units_ = 0;  ///< of rows and pieces, in any one job
  std::int64_t most_tiles_ = 0;  ///< of blocks of rows and columns
  bool pieces_ = false;          ///< whether some rows are cut into pieces
  bool blocks_ = false;          ///< whether some columns are cut into blocks of rows
  core::Array<DeviceJob> d_jobs_;
  core::Array<double> d_doubles_;  // vectors on their way to be orthonormal
  core::Array<float> d_partial_;   // sums of pieces, or of blocks of rows
};

}  // namespace scalecom::kernels::cuda::lowrank
