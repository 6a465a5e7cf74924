#include "scalecom/kernels/select.h"

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "scalecom/core/hash.h"
#include "scalecom/core/thread_pool.h"

namespace scalecom::kernels {
namespace {

using Keys = std::vector<std::uint32_t>;

// A key and its offset as one number, greater for a larger key, then for a lower offset.
std::uint64_t ranked(std::uint32_t key, std::size_t offset) {
  return (static_cast<std::uint64_t>(key) << 32) |
         (0xffffffffU - static_cast<std::uint32_t>(offset));
}

std::uint32_t offset_of(std::uint64_t ranked) {
  return 0xffffffffU - static_cast<std::uint32_t>(ranked);
}

// A key that at least `keep` of the keys reach, and not many more: the keys are dealt out to
// groups in turn, and `keep` groups have a largest one that reaches it.
std::uint32_t lower_bound_of(const Keys& keys, std::size_t keep) {
  // With four groups for each kept key, few of the largest meet in one group.
  constexpr std::size_t kGroupsPerKept = 4;
  constexpr std::size_t kFewestGroups = 16;
  const std::size_t groups = std::max(kFewestGroups, keep * kGroupsPerKept);
  if (groups * 2 > keys.size()) return 0;
  Keys largest(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(groups));
  for (std::size_t from = groups; from < keys.size(); from += groups) {
    const std::size_t n = std::min(groups, keys.size() - from);
    for (std::size_t i = 0; i < n; ++i) largest[i] = std::max(largest[i], keys[from + i]);
  }
  const auto kth = largest.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
  std::nth_element(largest.begin(), kth, largest.end(), std::greater<>());
  return *kth;
}

// The offsets of the `keep` largest keys, ascending, plus `base`.
void keep_largest(const Keys& keys, std::size_t keep, std::int64_t base, std::uint32_t* out) {
  const std::uint32_t bound = lower_bound_of(keys, keep);
  std::vector<std::uint64_t> candidates;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] >= bound) candidates.push_back(ranked(keys[i], i));
  }
  std::vector<std::uint64_t> order(candidates);
  const auto kth = order.begin() + static_cast<std::ptrdiff_t>(keep) - 1;
  std::nth_element(order.begin(), kth, order.end(), std::greater<>());
  for (const std::uint64_t candidate : candidates) {
    if (candidate >= *kth) *out++ = static_cast<std::uint32_t>(base + offset_of(candidate));
  }
}

// A part of one tensor, of one task.
struct Block {
  std::size_t tensor;
  std::int64_t begin;
  std::int64_t end;
  std::int64_t above = 0;  // keys over the threshold
  std::int64_t equal = 0;  // keys at the threshold
};

std::vector<Block> cut_into_blocks(std::span<const Tensor> tensors) {
  // Enough for every thread to have several, few enough for a histogram each.
  constexpr std::int64_t kBlocks = 64;
  constexpr std::int64_t kSmallest = 1 << 16;
  std::int64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.length;
  const std::int64_t size = std::max(kSmallest, total / kBlocks + 1);
  std::vector<Block> blocks;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::int64_t begin = 0; begin < tensors[t].length; begin += size) {
      blocks.push_back({t, begin, std::min(begin + size, tensors[t].length)});
    }
  }
  return blocks;
}

// Calls look(key, position) for the entries of a block whose key is wanted, in order.
template <typename Wanted, typename Look>
void for_each_key(const Tensor& tensor, Filter filter, const Block& block, Wanted wanted,
                  Look look) {
  // Keys on their way from the memory to `look`: they stay in the first-level cache.
  constexpr std::int64_t kStage = 2048;
  // Keys asked about together, so that the compiler uses vectors: most groups have none wanted.
  constexpr std::int64_t kGroup = 32;
  std::array<std::uint32_t, kStage> keys{};
  for (std::int64_t begin = block.begin; begin < block.end; begin += kStage) {
    const std::int64_t n = std::min(kStage, block.end - begin);
    table().keys(tensor, filter, begin, begin + n, keys.data());
    for (std::int64_t group = 0; group < n; group += kGroup) {
      const std::uint32_t* key = keys.data() + group;
      std::uint32_t any = 0;
      for (std::int64_t i = 0; i < kGroup; ++i) any |= static_cast<std::uint32_t>(wanted(key[i]));
      if (any == 0) continue;
      for (std::int64_t i = 0; i < std::min(kGroup, n - group); ++i) {
        if (wanted(key[i])) look(key[i], begin + group + i);
      }
    }
  }
}

// The key of which `keep` keys are over it or at it, the last of them being at it. Three rounds
// find it, a part of its bits each; the blocks learn how many of their keys are over it and at it.
std::uint32_t find_threshold(std::span<const Tensor> tensors, Filter filter, std::int64_t keep,
                             std::vector<Block>& blocks) {
  struct Round {
    int shift;
    int bits;
  };
  constexpr Round kRounds[] = {{19, 12}, {7, 12}, {0, 7}};
  constexpr std::size_t kMostBins = 1 << 12;
  using Histogram = std::array<std::uint32_t, kMostBins>;
  std::vector<Histogram> counts(blocks.size());
  std::uint32_t threshold = 0;
  for (const Round round : kRounds) {
    const int shift = round.shift;
    const int bits = round.bits;
    const std::uint32_t bins = 1U << bits;
    core::parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t b) {
      const Block& block = blocks[static_cast<std::size_t>(b)];
      Histogram& count = counts[static_cast<std::size_t>(b)];
      count.fill(0);
      const std::uint32_t known = threshold >> (shift + bits);
      for_each_key(
          tensors[block.tensor], filter, block,
          [=](std::uint32_t key) { return key >> (shift + bits) == known; },
          [&](std::uint32_t key, std::int64_t) { ++count[(key >> shift) & (bins - 1)]; });
    });
    std::uint32_t bin = bins - 1;
    for (;; --bin) {
      std::int64_t in_bin = 0;
      for (const Histogram& count : counts) in_bin += count[bin];
      if (in_bin >= keep) break;
      keep -= in_bin;
    }
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::uint32_t over = bin + 1; over < bins; ++over) blocks[b].above += counts[b][over];
      blocks[b].equal = counts[b][bin];
    }
    threshold |= bin << shift;
  }
  return threshold;
}

}  // namespace

void select_top(const Tensor& tensor, Filter filter, const layout::Cut& cut, std::int64_t first,
                std::int64_t last, std::uint32_t* positions) {
  Keys keys;
  for (std::int64_t c = first; c < last; ++c) {
    const std::int64_t begin = c * cut.chunk;
    const std::int64_t end = std::min(begin + cut.chunk, cut.length);
    const std::int64_t keep = cut.kept_before(c + 1) - cut.kept_before(c);
    keys.resize(static_cast<std::size_t>(end - begin));
    table().keys(tensor, filter, begin, end, keys.data());
    keep_largest(keys, static_cast<std::size_t>(keep), begin, positions + cut.kept_before(c));
  }
}

void select_exact(std::span<const Tensor> tensors, Filter filter, std::int64_t keep,
                  std::uint32_t* positions, std::int64_t* counts) {
  std::fill_n(counts, tensors.size(), 0);
  std::vector<Block> blocks = cut_into_blocks(tensors);
  std::int64_t total = 0;
  for (const Block& block : blocks) total += block.end - block.begin;
  keep = std::min(keep, total);
  if (keep <= 0) return;
  const std::uint32_t threshold = find_threshold(tensors, filter, keep, blocks);
  // The earliest blocks take as many of the keys at the threshold as are still wanted.
  for (const Block& block : blocks) keep -= block.above;
  std::vector<std::int64_t> starts;
  std::int64_t start = 0;
  for (Block& block : blocks) {
    block.equal = std::min(block.equal, keep);
    keep -= block.equal;
    starts.push_back(start);
    start += block.above + block.equal;
    counts[block.tensor] += block.above + block.equal;
  }
  core::parallel_for(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t b) {
    const Block& block = blocks[static_cast<std::size_t>(b)];
    std::uint32_t* out = positions + starts[static_cast<std::size_t>(b)];
    std::int64_t equal = block.equal;
    for_each_key(
        tensors[block.tensor], filter, block, [=](std::uint32_t key) { return key >= threshold; },
        [&](std::uint32_t key, std::int64_t i) {
          if (key > threshold || equal-- > 0) *out++ = static_cast<std::uint32_t>(i);
        });
  });
}

void select_random(std::uint64_t seed, std::int64_t chunks_before, const layout::Cut& cut,
                   std::int64_t first, std::int64_t last, std::uint32_t* positions) {
  for (std::int64_t c = first; c < last; ++c) {
    const std::int64_t begin = c * cut.chunk;
    const auto size = static_cast<std::uint64_t>(std::min(cut.chunk, cut.length - begin));
    // The upper half of the hash, scaled to [0, size): no place's chance is off by more than 2^-32.
    const std::uint64_t drawn =
        core::combine(seed, static_cast<std::uint64_t>(chunks_before + c)) >> 32;
    positions[c] =
        static_cast<std::uint32_t>(static_cast<std::uint64_t>(begin) + ((drawn * size) >> 32));
  }
}

}  // namespace scalecom::kernels
