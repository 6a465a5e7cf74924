#pragma once

#include <cuda_runtime_api.h>

#include "scalecom/kernels/cuda/tables.h"

/// What step.cc puts on streams: every function here launches one kernel if it says nothing else,
/// or none where there is nothing to do.
namespace scalecom::kernels::cuda {

/// A step as kernels take it, by value.
struct Pass {
  Pass(const Tables& tables, const Step& step)
      : tables(tables),
        step(step),
        rest(1.0F - step.filter.beta),
        dense_factor(1.0F / static_cast<float>(step.size)) {}

  Tables tables;
  Step step;
  float rest;          ///< 1 - beta
  float dense_factor;  ///< 1 / size
};

/// accumulate; a random selection's entries are drawn and taken too.
void launch_accumulate(const Pass& pass, cudaStream_t stream);

/// accumulate, and the largest entry of each named chunk is taken, but for long chunks, whose
/// largest is left in d_best. `packs`: the tiles' offsets are packed as well.
void launch_lead(const Pass& pass, bool packs, cudaStream_t stream);
/// The same, the entries being those that the packed offsets name. No chunk is long.
void launch_follow(const Pass& pass, cudaStream_t stream);
/// Takes what d_best names.
void launch_take_best(const Pass& pass, cudaStream_t stream);

/// accumulate, and the largest entries of each named chunk are taken, but for long chunks.
void launch_top(const Pass& pass, cudaStream_t stream);
/// Those of long chunks.
void launch_long_top(const Pass& pass, cudaStream_t stream);

/// An exact selection, in this order: guess the threshold; accumulate, count keys and list
/// candidates; narrow the threshold down, which is two kernels; take.
void launch_exact_guess(const Pass& pass, cudaStream_t stream);
void launch_exact_list(const Pass& pass, cudaStream_t stream);
void launch_exact_narrow(const Pass& pass, cudaStream_t stream);
void launch_exact_take(const Pass& pass, cudaStream_t stream);

/// Packs the offsets of the items that this rank named.
void launch_pack(const Pass& pass, cudaStream_t stream);
void launch_exact_pack(const Pass& pass, cudaStream_t stream);
/// Unpacks the offsets that others named. Where a chunk has one entry they are taken too; otherwise
/// they are checked first, and launch_take_unpacked takes them.
void launch_unpack(const Pass& pass, cudaStream_t stream);
void launch_exact_unpack(const Pass& pass, cudaStream_t stream);
void launch_take_unpacked(const Pass& pass, cudaStream_t stream);

void launch_finish(const Pass& pass, float factor, cudaStream_t stream);
void launch_settle_rounding(const Pass& pass, std::int64_t first, std::int64_t count,
                            const float* d_rounding, cudaStream_t stream);
void launch_put_back(const Pass& pass, const std::int32_t* d_condition, cudaStream_t stream);

}  // namespace scalecom::kernels::cuda
