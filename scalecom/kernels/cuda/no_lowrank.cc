#include "scalecom/core/error.h"
#include "scalecom/kernels/cuda/lowrank.h"

// There is no CUDA stream to make one with: see core/cuda/no_cuda.cc.
namespace scalecom::kernels::cuda::lowrank {

Batch::Batch(std::span<const Job> /*jobs*/, const core::Stream& /*stream*/) {
  throw core::UsageError("[cuda] this build has no CUDA; build with `cmake --preset cuda`");
}
void Batch::draw_q(std::uint64_t /*seed*/, const core::Stream& /*stream*/) {}
void Batch::adopt_q(const core::Stream& /*stream*/) {}
void Batch::accumulate(const core::Buffer& /*grad*/, Flag* /*d_flag*/,
                       const core::Stream& /*stream*/) {}
void Batch::orthonormalise_p(const core::Stream& /*stream*/) {}
void Batch::project(const core::Stream& /*stream*/) {}
void Batch::average_q(float /*factor*/, Flag* /*d_flag*/, const core::Stream& /*stream*/) {}
void Batch::expand(const core::Buffer& /*grad*/, const Flag* /*d_flag*/,
                   const core::Stream& /*stream*/) {}
void Batch::settle(const core::Stream& /*stream*/) {}

}  // namespace scalecom::kernels::cuda::lowrank
