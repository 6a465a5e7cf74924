#pragma once

#include "scalecom/kernels/pieces.h"

/// kernels/pieces.h on a CUDA stream: a block a tile.
namespace scalecom::kernels::cuda {

using elementwise::Flag;

void load_pieces(std::span<const Piece> d_tiles, const void* d_grad, core::DType dtype,
                 float factor, float* d_pieces, const core::Stream& stream);
void store_pieces(std::span<const Piece> d_tiles, const float* d_pieces, void* d_grad,
                  core::DType dtype, const Flag* d_flag, const core::Stream& stream);
void mark(const Flag* d_flag, float* d_numbers, std::int64_t stride, std::int64_t count,
          const core::Stream& stream);
void spoil(const float* d_mark, float* d_number, const core::Stream& stream);

}  // namespace scalecom::kernels::cuda
