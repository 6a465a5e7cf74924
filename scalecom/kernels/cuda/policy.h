#pragma once

#include <cstdint>

/// The tuning constants of the kernels, found by measuring on an H200. No kernel has any of its
/// own.
namespace scalecom::kernels::cuda::policy {

/// The first pass: a block takes a tile, which a leader stages in shared memory.
struct FirstPass {
  static constexpr int kThreads = 256;
  /// Blocks that a processor's registers are to have room for.
  static constexpr int kMinBlocks = 6;
  /// Vectors of each array that a thread has in flight.
  static constexpr int kUnroll = 2;
  /// Elements that a tile of whole chunks comes close to.
  static constexpr int kTileElements = 5120;
  /// Chunks of a tile come in this number, so that their offsets fill whole bytes whatever their
  /// bits are, and a tile begins at a vector's boundary where its tensor does.
  static constexpr int kTileStep = 8;
  static constexpr int kMostTileChunks = 1024;
  /// Tiles begin at a multiple of this many elements where chunks are short enough: a cache line of
  /// any gradient, so that no two blocks share one.
  static constexpr int kLineElements = 64;
  /// Longer chunks are cut over several blocks.
  static constexpr std::int64_t kLongestChunk = 1024;
  /// Elements of a tile that knows no chunks.
  static constexpr int kRunElements = 8192;
  /// Of any tile: one of whole chunks is one step of the longest, or off its number by a third.
  static constexpr int kMostTileElements = kRunElements;
  static_assert(kTileStep * kLongestChunk <= kMostTileElements);
  static_assert(kTileElements / 3 * 4 <= kMostTileElements);
};

/// The largest entries of a chunk too long for a tile, by a block.
struct LongTop {
  static constexpr int kThreads = 512;
  /// Of the 31 bits of a key: in the first round, and in each of those that follow.
  static constexpr int kFirstBits = 11;
  static constexpr int kNextBits = 10;
};

/// The passes of an exact selection.
struct Exact {
  /// Of the 31 bits of a key: those that the pass over the data makes certain, and each after it.
  static constexpr int kFirstBits = 13;
  static constexpr int kNextBits = 9;
  static constexpr int kThreads = 512;
  static constexpr int kBlocksPerProcessor = 3;
  static constexpr int kUnroll = 2;
  /// A thread looks at an entry to guess the threshold's upper bits. The guess is to be too high
  /// once in millions of steps, so it lies so many standard deviations below what is expected.
  static constexpr int kGuessThreads = 1024;
  static constexpr int kGuessBlocks = 16;
  static constexpr int kGuessBits = 19;
  static constexpr float kGuessDeviations = 5.0F;
  /// Room for candidates: the items, one more in so many of them, and one element in so many.
  static constexpr std::int64_t kListedMoreOneIn = 4;
  static constexpr std::int64_t kListedOneIn = 128;
  /// Of the passes over candidates.
  static constexpr int kNarrowBlocksPerProcessor = 1;
  static constexpr int kTakeThreads = 512;
  static constexpr int kTakeBlocksPerProcessor = 2;
  /// Candidates that a lane has under way.
  static constexpr int kTakeAtOnce = 4;
  static constexpr int kMostTakeBlocks = 1024;
};

/// A thread an item, or a byte of packed offsets.
struct Items {
  static constexpr int kThreads = 256;
};

/// Zero and scatter, by blocks that stay for several tiles.
struct Finish {
  static constexpr int kThreads = 256;
  static constexpr int kBlocksPerProcessor = 6;
};

struct Elementwise {
  /// Arrays of one launch that takes several: what fits into 4 KB of parameters.
  static constexpr int kArrays = 128;
  static constexpr int kThreads = 256;
  static constexpr int kUnroll = 4;
  static constexpr int kBlocksPerProcessor = 16;
};

/// A matrix and its thin factors.
struct LowRank {
  /// Of a block in which a warp takes some rows at a time over a piece of their columns.
  static constexpr int kThreads = 256;
  static constexpr int kRows = 4;
  static constexpr std::int64_t kPiece = 2048;
  /// Of a block that goes down some rows, a thread a column.
  static constexpr int kColumns = 128;
  static constexpr std::int64_t kBlockRows = 128;
  /// Of the one block that makes a matrix's factors orthonormal.
  static constexpr int kOrthonormalThreads = 512;
  static constexpr int kBlocksPerProcessor = 8;
};

/// Copies and sums of arrays of ranks that share a GPU.
struct Exchange {
  static constexpr int kThreads = 256;
  /// Loads that a thread has under way at once.
  static constexpr int kUnroll = 4;
  /// Blocks of a launch at most: enough to fill the largest devices, as threads walk on in strides.
  static constexpr int kBlocks = 1056;
  /// What fits into the 4 KB of a kernel's parameters that are free of charge.
  static constexpr int kCopies = 128;
  static constexpr int kFewParts = 128;
};

}  // namespace scalecom::kernels::cuda::policy
