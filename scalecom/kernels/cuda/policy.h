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
  /// Elements of a tile that knows no chunks: a word of 32 bits for each thread, in bitmaps.
  static constexpr int kRunElements = 32 * kThreads;
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

/// The passes of an exact selection, and the bits of a key that each makes certain.
struct Exact {
  static constexpr int kThreads = 512;
  static constexpr int kBlocksPerProcessor = 3;
  static constexpr int kUnroll = 2;
  static constexpr int kFirstBits = 13;
  static constexpr int kSecondBits = 12;
  static constexpr int kThirdBits = 6;
  /// Of the kernels that look at bitmaps.
  static constexpr int kWordThreads = FirstPass::kThreads;
  static constexpr int kScanItems = 8;
  /// The first pass marks keys from so many bins under the last step's threshold on, and the second
  /// looks at those alone where the guess was right and they are at most one element in so many.
  static constexpr std::uint32_t kGuessMargin = 2;
  static constexpr std::int64_t kMarkedOneIn = 16;
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
