#pragma once

#include "scalecom/kernels/cuda/entry.cuh"
#include "scalecom/kernels/cuda/policy.h"

/// Looking at marked entries of a tile, a warp a tile: their keys are read one by one, and no
/// others.
namespace scalecom::kernels::cuda {

constexpr int kTileWords = policy::FirstPass::kRunElements / 32;
constexpr int kLaneWords = kTileWords / 32;
static_assert(kLaneWords == 8, "two vectors a lane");

/// A lane's words of a tile in one bitmap.
struct LaneWords {
  __device__ LaneWords(const std::uint32_t* d_words, std::int64_t first) {
    const auto* d_vectors = reinterpret_cast<const uint4*>(d_words + first);
    low = d_vectors[0];
    high = d_vectors[1];
  }

  __device__ bool any() const {
    return (low.x | low.y | low.z | low.w | high.x | high.y | high.z | high.w) != 0;
  }
  __device__ unsigned count() const {
    return static_cast<unsigned>(__popc(low.x) + __popc(low.y) + __popc(low.z) + __popc(low.w) +
                                 __popc(high.x) + __popc(high.y) + __popc(high.z) + __popc(high.w));
  }

  uint4 low;
  uint4 high;
};

/// A tile of a warp: its number, and the lane's first word in the bitmaps.
struct WarpTile {
  __device__ explicit WarpTile(std::int64_t number)
      : number(number),
        lane(static_cast<int>(threadIdx.x) % 32),
        first_word(number * kTileWords + lane * kLaneWords) {}

  std::int64_t number;
  int lane;
  std::int64_t first_word;
};

enum class Verdict { kUnder, kSame, kAbove };

/// Calls judge(key) for the entries that a lane's words of d_equal mark, and done(word, marked,
/// above, same) for each word: its index, what it was, and the entries judged so. All lanes look at
/// their n-th entry at once, whatever words they lie in, so that they wait for memory together.
template <typename Type, typename Judge, typename Done>
__device__ void sift(const Pass& pass, const WarpTile& where, Judge judge, Done done) {
  const Tile& tile = pass.tables.d_tiles[where.number];
  const std::uint32_t* d_marked = pass.tables.d_equal + where.first_word;
  const auto* d_grad = gradient<Type>(pass, tile.grad) + 32 * kLaneWords * where.lane;
  const float* d_memory = tile.d_memory + 32 * kLaneWords * where.lane;
  int k = 0;
  std::uint32_t marked = d_marked[0];
  std::uint32_t left = marked;
  std::uint32_t above = 0;
  std::uint32_t same = 0;
  while (true) {
    while (left == 0 && k < kLaneWords) {
      done(where.first_word + k, marked, above, same);
      if (++k == kLaneWords) break;
      marked = left = d_marked[k];
      above = same = 0;
    }
    if (k == kLaneWords) return;
    const int bit = __ffs(static_cast<int>(left)) - 1;
    const int i = 32 * k + bit;
    left &= left - 1;
    const Verdict verdict =
        judge(magnitude_bits(to_send(pass, Type::load(d_grad[i]), d_memory[i])));
    if (verdict == Verdict::kAbove) above |= 1U << bit;
    if (verdict == Verdict::kSame) same |= 1U << bit;
  }
}

}  // namespace scalecom::kernels::cuda
