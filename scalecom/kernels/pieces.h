#pragma once

#include <cstdint>
#include <span>

#include "scalecom/core/array.h"
#include "scalecom/core/dtype.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/elementwise.h"

/// A gradient taken apart into pieces that lie elsewhere in another order, and put together again:
/// as kernels/elementwise.h, all pieces in one pass.
namespace scalecom::kernels {

/// `count` elements that begin at `in_gradient` in a gradient and at `in_pieces` in the array of
/// pieces.
struct Piece {
  std::int64_t in_gradient = 0;
  std::int64_t in_pieces = 0;
  std::int64_t count = 0;
};

class Pieces {
 public:
  using Flag = elementwise::Flag;

  /// On the stream's device, which the host may wait for.
  Pieces(std::span<const Piece> pieces, const core::Stream& stream);

  /// The gradient's pieces in fp32, times `factor`.
  void load(const void* grad, core::DType dtype, float factor, float* pieces,
            const core::Stream& stream) const;
  /// And back, rounded to the gradient's type; all NaN where the flag is set.
  void store(const float* pieces, void* grad, core::DType dtype, const Flag* flag,
             const core::Stream& stream) const;

 private:
  core::Array<Piece> tiles_;  // the pieces, cut to what one block takes
};

/// numbers[0], numbers[stride], ...: `count` of them become 1 where the flag is set, else 0.
void mark(const elementwise::Flag* flag, float* numbers, std::int64_t stride, std::int64_t count,
          const core::Stream& stream);

/// *number becomes NaN unless *mark is 0.
void spoil(const float* mark, float* number, const core::Stream& stream);

}  // namespace scalecom::kernels
