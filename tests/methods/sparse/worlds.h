#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/methods/ranks.h"

/// What the tests of the sparse methods share.
namespace scalecom::methods::testing {

/// Every kind of slice: dense, empty, of one element, shorter than its rate, long enough to be
/// sampled and divided among threads.
inline layout::Layout mixed_layout() {
  return layout_of(
      {{13, 1}, {1000, 10}, {1, 1}, {0, 7}, {777, 25}, {99, 100}, {1, 5}, {70000, 16}});
}

/// The same with entries of equal size, and zeros of both signs.
inline Gradients with_ties(Gradients gradients) {
  for (auto& one : gradients) {
    for (std::size_t i = 20; i < one.size(); i += 9) one[i] = -one[i - 1];
    for (std::size_t i = 30; i < one.size(); i += 11) one[i] = i % 2 == 0 ? 0.0F : -0.0F;
  }
  return gradients;
}

inline std::vector<float> memory_of(World& world, int rank, const std::string& name) {
  for (const NamedMemory& memory : world.method(rank).memories()) {
    if (memory.name == name) return {memory.values.begin(), memory.values.end()};
  }
  return {};
}

/// That the memories of a rank, under their tensors' names and `suffix`, have these bits.
inline void expect_memories(World& world, int rank, const layout::Layout& layout,
                            const std::vector<float>& expected, const std::string& suffix = "") {
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.dense() || slice.length == 0) continue;
    const auto begin = expected.begin() + slice.offset;
    const std::vector<float> memory = memory_of(world, rank, slice.name + suffix);
    ASSERT_EQ(memory, std::vector<float>(begin, begin + slice.length))
        << slice.name << suffix << " of rank " << rank << " of " << world.size();
  }
}

/// All memories of all ranks, by rank and name.
inline std::vector<std::vector<float>> memories_of(World& world) {
  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < world.size(); ++rank) {
    for (const NamedMemory& memory : world.method(rank).memories()) {
      all.emplace_back(memory.values.begin(), memory.values.end());
    }
  }
  return all;
}

}  // namespace scalecom::methods::testing
