#include "scalecom/kernels/pieces.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/cuda/pieces.h"
#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels {
namespace {

// Short enough to divide a small bucket among many blocks or threads.
constexpr std::int64_t kTile = 8192;

std::vector<Piece> cut(std::span<const Piece> pieces) {
  std::vector<Piece> tiles;
  for (const Piece& piece : pieces) {
    for (std::int64_t i = 0; i < piece.count; i += kTile) {
      tiles.push_back(
          {piece.in_gradient + i, piece.in_pieces + i, std::min(kTile, piece.count - i)});
    }
  }
  return tiles;
}

template <typename T>
T* at(T* grad, core::DType dtype, std::int64_t index) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(grad) + index * core::size_of(dtype);
}

}  // namespace

Pieces::Pieces(std::span<const Piece> pieces, const core::Stream& stream) {
  const std::vector<Piece> tiles = cut(pieces);
  tiles_ = core::Array<Piece>(stream.device(), static_cast<std::int64_t>(tiles.size()));
  if (stream.device().is_cuda()) {
    core::cuda::copy(tiles_.data(), tiles.data(),
                     static_cast<std::int64_t>(tiles.size() * sizeof(Piece)), stream);
    core::cuda::synchronize(stream);
  } else {
    std::copy(tiles.begin(), tiles.end(), tiles_.data());
  }
}

void Pieces::load(const void* grad, core::DType dtype, float factor, float* pieces,
                  const core::Stream& stream) const {
  if (stream.device().is_cuda()) {
    cuda::load_pieces(tiles_.span(), grad, dtype, factor, pieces, stream);
    return;
  }
  core::parallel_for(tiles_.size(), [&](std::int64_t i) {
    const Piece& tile = tiles_.data()[i];
    table().load(at(grad, dtype, tile.in_gradient), dtype, tile.count, factor,
                 pieces + tile.in_pieces);
  });
}

void Pieces::store(const float* pieces, void* grad, core::DType dtype, const Flag* flag,
                   const core::Stream& stream) const {
  if (stream.device().is_cuda()) {
    cuda::store_pieces(tiles_.span(), pieces, grad, dtype, flag, stream);
    return;
  }
  core::parallel_for(tiles_.size(), [&](std::int64_t i) {
    const Piece& tile = tiles_.data()[i];
    elementwise::store(pieces + tile.in_pieces, tile.count, at(grad, dtype, tile.in_gradient),
                       dtype, flag, stream);
  });
}

void mark(const elementwise::Flag* flag, float* numbers, std::int64_t stride, std::int64_t count,
          const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::mark(flag, numbers, stride, count, stream);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) numbers[i * stride] = *flag != 0 ? 1.0F : 0.0F;
}

void spoil(const float* mark, float* number, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::spoil(mark, number, stream);
    return;
  }
  if (*mark != 0.0F) *number = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace scalecom::kernels
