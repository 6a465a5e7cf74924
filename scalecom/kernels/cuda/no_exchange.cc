#include "scalecom/core/error.h"
#include "scalecom/kernels/cuda/exchange.h"

// There is no CUDA stream to call these with: see core/cuda/no_cuda.cc.
namespace scalecom::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw core::UsageError("[cuda] this build has no CUDA; build with `cmake --preset cuda`");
}

}  // namespace

void copy_all(std::span<const Copy> /*copies*/, const core::Stream& /*stream*/) {
  refuse();
}
void sum_in_order(std::span<const float* const> /*d_parts*/, float* /*d_out*/,
                  std::int64_t /*count*/, const core::Stream& /*stream*/) {
  refuse();
}

}  // namespace scalecom::kernels::cuda
