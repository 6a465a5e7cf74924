#include "scalecom/core/error.h"
#include "scalecom/kernels/cuda/elementwise.h"
#include "scalecom/kernels/cuda/gathered.h"
#include "scalecom/kernels/cuda/largest.h"
#include "scalecom/kernels/cuda/momentum.h"
#include "scalecom/kernels/cuda/step.h"

// There is no CUDA stream to call these with: see core/cuda/no_cuda.cc.
namespace scalecom::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw core::UsageError("[cuda] this build has no CUDA; build with `cmake --preset cuda`");
}

}  // namespace

std::int64_t Bucket::scratch_bytes(const Shape& /*shape*/) {
  refuse();
}
Bucket::Bucket(const Shape& /*shape*/, void* /*d_scratch*/, const core::Stream& /*stream*/) {
  refuse();
}
void Bucket::first_pass(const Step& /*step*/, const core::Stream& /*stream*/) const {}
void Bucket::take(const Step& /*step*/, const core::Stream& /*stream*/) const {}
void Bucket::finish(const Step& /*step*/, float /*factor*/, const core::Stream& /*stream*/) const {}
void Bucket::settle_rounding(const Step& /*step*/, std::int64_t /*first*/, std::int64_t /*count*/,
                             const float* /*d_rounding*/, const core::Stream& /*stream*/) const {}
void Bucket::put_back(const Step& /*step*/, const std::int32_t* /*d_condition*/,
                      const core::Stream& /*stream*/) const {}

void add_gathered(const GatheredPart* /*d_parts*/, std::int64_t /*parts*/, std::int64_t /*items*/,
                  const std::byte* /*d_message*/, float /*factor*/, float* /*d_sums*/,
                  kernels::elementwise::Flag* /*d_flag*/, const core::Stream& /*stream*/) {}
void flag_unless_zero(const float* /*d_number*/, kernels::elementwise::Flag* /*d_flag*/,
                      const core::Stream& /*stream*/) {}
void fill_nan_if(const kernels::elementwise::Flag* /*d_flag*/, float* /*d_numbers*/,
                 std::int64_t /*count*/, const core::Stream& /*stream*/) {}
void decide_sent(const kernels::elementwise::Flag* /*d_flag*/, std::int32_t* /*d_sent*/,
                 std::int32_t* /*d_refused*/, const core::Stream& /*stream*/) {}
void accumulate_momentum(const void* /*d_grad*/, core::DType /*dtype*/, float* /*d_memory*/,
                         float* /*d_velocity*/, std::int64_t /*count*/, Momentum /*momentum*/,
                         float /*scale*/, float* /*d_flag*/, const core::Stream& /*stream*/) {
  refuse();
}
void apply_momentum(float* /*d_numbers*/, float* /*d_velocity*/, std::int64_t /*count*/,
                    Momentum /*momentum*/, float /*factor*/, float* /*d_flag*/,
                    const core::Stream& /*stream*/) {
  refuse();
}
void sum_of_squares(const void* /*d_grad*/, core::DType /*dtype*/, std::int64_t /*count*/,
                    double* /*d_sums*/, const core::Stream& /*stream*/) {
  refuse();
}
void take_masked(float* /*d_memory*/, float* /*d_velocity*/, const Masked& /*items*/,
                 const core::Stream& /*stream*/) {
  refuse();
}
void put_masked_back(float* /*d_memory*/, float* /*d_velocity*/, const Masked& /*items*/,
                     const std::int32_t* /*d_condition*/, const core::Stream& /*stream*/) {
  refuse();
}
void restore_if(const std::int32_t* /*d_condition*/, const float* /*d_before*/,
                std::int64_t /*count*/, float* /*d_numbers*/, const core::Stream& /*stream*/) {
  refuse();
}
void gather_strided(const float* /*d_numbers*/, std::int64_t /*first*/, std::int64_t /*stride*/,
                    std::int64_t /*count*/, float* /*d_out*/, const core::Stream& /*stream*/) {
  refuse();
}
void gather(const float* /*d_numbers*/, const std::uint32_t* /*d_positions*/,
            std::int64_t /*count*/, float* /*d_out*/, const core::Stream& /*stream*/) {
  refuse();
}
void count_from(const float* /*d_numbers*/, std::int64_t /*length*/, std::int32_t /*least*/,
                std::uint32_t* /*d_counts*/, const core::Stream& /*stream*/) {
  refuse();
}
void write_positions_from(const float* /*d_numbers*/, std::int64_t /*length*/,
                          std::int32_t /*least*/, const std::uint32_t* /*d_starts*/,
                          std::uint32_t* /*d_positions*/, const core::Stream& /*stream*/) {
  refuse();
}

namespace elementwise {

void load(const void* /*d_grad*/, core::DType /*dtype*/, std::int64_t /*count*/, float /*factor*/,
          float* /*d_out*/, const core::Stream& /*stream*/) {
  refuse();
}
void check_finite(const float* /*d_numbers*/, std::int64_t /*count*/, Flag* /*d_flag*/,
                  const core::Stream& /*stream*/) {
  refuse();
}
void store(const float* /*d_in*/, std::int64_t /*count*/, void* /*d_grad*/, core::DType /*dtype*/,
           const Flag* /*d_flag*/, const core::Stream& /*stream*/) {
  refuse();
}
void narrow(const float* /*d_in*/, std::int64_t /*count*/, core::DType /*type*/,
            std::uint16_t* /*d_out*/, const core::Stream& /*stream*/) {
  refuse();
}
void widen(const std::uint16_t* /*d_in*/, std::int64_t /*count*/, core::DType /*type*/,
           float* /*d_out*/, const core::Stream& /*stream*/) {
  refuse();
}
void mean_of_narrow(const std::uint16_t* /*d_arrived*/, std::int64_t /*count*/, int /*ranks*/,
                    core::DType /*type*/, std::uint16_t* /*d_mean*/, float* /*d_rounding*/,
                    const core::Stream& /*stream*/) {
  refuse();
}
void add_quotient(float* /*d_to*/, const float* /*d_from*/, std::int64_t /*count*/,
                  float /*divisor*/, float /*factor*/, const core::Stream& /*stream*/) {
  refuse();
}
void scale(float* /*d_numbers*/, std::int64_t /*count*/, float /*factor*/,
           const core::Stream& /*stream*/) {
  refuse();
}
void scale_all(std::span<const Numbers> /*arrays*/, const float* /*d_factor*/,
               const core::Stream& /*stream*/) {
  refuse();
}
void follow(const float* /*d_now*/, float* /*d_last*/, float* /*d_factor*/, Flag* /*d_fell*/,
            const core::Stream& /*stream*/) {
  refuse();
}

}  // namespace elementwise
}  // namespace scalecom::kernels::cuda
