#pragma once

#include "scalecom/kernels/cuda/launch.h"
#include "scalecom/kernels/cuda/number.cuh"

/// One entry, in exactly the operations of kernels.h.
namespace scalecom::kernels::cuda {

__device__ inline float filtered(const Filter& filter, float g, float m) {
  return __fmaf_rn(filter.beta, g, __fmul_rn(filter.decay, m));
}

/// u of an entry whose memory is m'.
__device__ inline float to_send(const Pass& pass, float g, float memory) {
  return __fmaf_rn(pass.rest, g, memory);
}

__device__ inline void set_flag(const Pass& pass) {
  pass.step.d_message[pass.tables.items + pass.tables.dense_elements] = 1.0F;
}

__device__ inline float flag(const Pass& pass) {
  return pass.step.d_message[pass.tables.items + pass.tables.dense_elements];
}

/// What a first pass does once: the last step may have been given up half-way.
__device__ inline void begin_step(const Pass& pass) {
  if (blockIdx.x == 0 && threadIdx.x == 0) pass.tables.d_state->damaged = 0;
}

template <typename Type>
__device__ typename Type::Stored* gradient(const Pass& pass, std::int64_t element) {
  return static_cast<typename Type::Stored*>(pass.step.d_grad) + element;
}

/// Takes the entry at `position` of a tensor whose memory is m', as `item`.
template <typename Type>
__device__ void take_entry(const Pass& pass, const typename Type::Stored* d_grad, float* d_memory,
                           std::int64_t item, std::uint32_t position) {
  const float before = d_memory[position];
  const float sent =
      rounded_to(pass.step.values, to_send(pass, Type::load(d_grad[position]), before));
  pass.step.d_positions[item] = position;
  pass.step.d_message[item] = sent;
  pass.step.d_before[item] = before;
  d_memory[position] = __fmaf_rn(-pass.step.filter.beta, sent, before);
}

/// The same, the tensor being that of a part.
template <typename Type>
__device__ void take_entry(const Pass& pass, const Part& part, std::int64_t item,
                           std::uint32_t position) {
  take_entry<Type>(pass, gradient<Type>(pass, part.offset), part.d_memory, item, position);
}

}  // namespace scalecom::kernels::cuda
