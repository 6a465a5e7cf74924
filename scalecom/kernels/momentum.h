#pragma once

#include <cstdint>

#include "scalecom/kernels/kernels.h"

/// Momentum before compression, as DGC has it: a tensor has a velocity beside its memory. One
/// entry, each operation rounded:
///     g' = g * scale
///     u  = factor*u + g',   m += u          or, by Nesterov,
///     u  = factor*(u + g'), m += u + g'
namespace scalecom::kernels {

struct Momentum {
  float factor = 0;
  bool nesterov = false;
};

/// [begin, end) of a tensor, whose velocity is an array beside its memory. An entry that would not
/// be finite keeps what it had. Returns whether all were.
bool accumulate_momentum(const Tensor& tensor, float* velocity, Momentum momentum, float scale,
                         std::int64_t begin, std::int64_t end);

/// The same without a memory, for gradients that are sent whole: `numbers`, which are g', become
/// `factor` times what would have been added to one.
bool apply_momentum(float* numbers, float* velocity, std::int64_t count, Momentum momentum,
                    float factor);

/// The sum of squares of [begin, end) of a gradient, in double precision.
double sum_of_squares(const void* grad, core::DType dtype, std::int64_t begin, std::int64_t end);

}  // namespace scalecom::kernels
