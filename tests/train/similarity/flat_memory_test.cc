#include "train/similarity/flat_memory.h"

#include <gtest/gtest.h>

namespace train::similarity {
namespace {

using scalecom::methods::NamedMemory;
using Values = std::vector<float>;

const scalecom::layout::Layout& layout() {
  static const scalecom::layout::Layout layout({{"a", 0, 2, 1}, {"b", 2, 4, 2}, {"c[0]", 6, 1, 2}});
  return layout;
}

Values flat(const FlatMemory& memory, std::int64_t begin, std::size_t length) {
  Values out(length, -1);
  memory.copy(begin, out);
  return out;
}

TEST(FlatMemoryTest, PutsMemoriesInTheirPlaces) {
  const Values b{1, 2, 3, 4};
  const Values c{5};
  const std::vector<NamedMemory> memories{{"b", b}, {"c[0]", c}};
  const FlatMemory memory(layout(), memories);
  EXPECT_EQ(memory.elements(), 5);
  EXPECT_EQ(flat(memory, 0, 7), (Values{0, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(flat(memory, 1, 3), (Values{0, 1, 2}));
  EXPECT_EQ(flat(memory, 4, 1), (Values{3}));
  EXPECT_EQ(flat(memory, 4, 0), Values());
  Values all{9};
  memory.append_to(all);
  EXPECT_EQ(all, (Values{9, 1, 2, 3, 4, 5}));
}

TEST(FlatMemoryTest, KnowsPartsOfTensors) {
  const Values part{7, 8};
  const std::vector<NamedMemory> memories{{"b[1:3]", part}};
  EXPECT_EQ(flat(FlatMemory(layout(), memories), 0, 7), (Values{0, 0, 0, 7, 8, 0, 0}));
}

TEST(FlatMemoryTest, LeavesOutWhatIsNoErrorFeedback) {
  const Values other{7, 8};
  const std::vector<NamedMemory> memories{{"b/q", other}, {"z", other}, {"z[0:2]", other}};
  const FlatMemory memory(layout(), memories);
  EXPECT_EQ(memory.elements(), 0);
  EXPECT_EQ(flat(memory, 0, 7), Values(7, 0));
}

}  // namespace
}  // namespace train::similarity
