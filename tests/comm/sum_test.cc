#include "scalecom/comm/sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/comm/world.h"

namespace scalecom::comm {
namespace {

using testing::awkward_array;
using testing::awkward_sum;
using testing::same_bits;

TEST(SumTest, TakesPartsInOrderWhereverTheSumGoes) {
  for (const int parts : {2, 3, 7}) {
    // Around a block, and longer than what one thread does.
    for (const std::int64_t length : {0, 1, 2047, 2048, 2049, 600'001}) {
      for (const int into : {0, parts / 2, parts - 1}) {
        std::vector<std::vector<float>> arrays;
        std::vector<const float*> pointers;
        for (int part = 0; part < parts; ++part) {
          arrays.push_back(awkward_array(part, length));
          pointers.push_back(arrays.back().data());
        }
        std::vector<float>& out = arrays[static_cast<std::size_t>(into)];
        sum_in_order(pointers, out.data(), length);
        EXPECT_TRUE(same_bits(out, awkward_sum(parts, length))) << parts << " of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace scalecom::comm
