#include "scalecom/core/error.h"
#include "scalecom/kernels/cuda/pieces.h"

// There is no CUDA stream to call these with: see core/cuda/no_cuda.cc.
namespace scalecom::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw core::UsageError("[cuda] this build has no CUDA; build with `cmake --preset cuda`");
}

}  // namespace

void load_pieces(std::span<const Piece> /*d_tiles*/, const void* /*d_grad*/, core::DType /*dtype*/,
                 float /*factor*/, float* /*d_pieces*/, const core::Stream& /*stream*/) {
  refuse();
}
void store_pieces(std::span<const Piece> /*d_tiles*/, const float* /*d_pieces*/, void* /*d_grad*/,
                  core::DType /*dtype*/, const Flag* /*d_flag*/, const core::Stream& /*stream*/) {
  refuse();
}
void mark(const Flag* /*d_flag*/, float* /*d_numbers*/, std::int64_t /*stride*/,
          std::int64_t /*count*/, const core::Stream& /*stream*/) {
  refuse();
}
void spoil(const float* /*d_mark*/, float* /*d_number*/, const core::Stream& /*stream*/) {
  refuse();
}

}  // namespace scalecom::kernels::cuda
