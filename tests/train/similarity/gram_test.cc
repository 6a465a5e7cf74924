#include "train/similarity/gram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace train::similarity {
namespace {

TEST(GramTest, AnglesOfVectorsInPieces) {
  Gram gram(3);
  gram.add(std::vector<float>{3, /**/ -4, /**/ 0});
  gram.add(std::vector<float>{4, 1, /**/ 3, 0, /**/ 0, 2});
  EXPECT_DOUBLE_EQ(gram.norm(0), std::sqrt(26));
  EXPECT_DOUBLE_EQ(gram.norm(1), 5);
  EXPECT_DOUBLE_EQ(gram.cosine(0, 1), 0);
  EXPECT_DOUBLE_EQ(gram.cosine(2, 0), 2 / (2 * std::sqrt(26)));
  EXPECT_DOUBLE_EQ(gram.cosine(0, 2), gram.cosine(2, 0));
  const auto distances = gram.distances();
  ASSERT_TRUE(distances);
  EXPECT_DOUBLE_EQ(distances->most, 1);
  EXPECT_DOUBLE_EQ(distances->least, 1 - gram.cosine(0, 2));
  EXPECT_DOUBLE_EQ(distances->mean, (2 + distances->least) / 3);
}

TEST(GramTest, LongVectorsAgreeWithPlainSums) {
  constexpr std::size_t kLength = 10'003;  // more than a block, and no multiple of anything
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  std::vector<float> both(2 * kLength);
  for (float& x : both) x = draw(random);
  double product = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    product += static_cast<double>(both[i]) * both[kLength + i];
  }
  Gram gram(2);
  gram.add(both);
  EXPECT_NEAR(gram.cosine(0, 1) * gram.norm(0) * gram.norm(1), product, 1e-9 * kLength);
}

TEST(GramTest, SumsOfPartsAreTheWhole) {
  Gram whole(2);
  whole.add(std::vector<float>{1, 2, /**/ 3, 4});
  Gram part(2);
  part.add(std::vector<float>{1, /**/ 3});
  Gram rest(2);
  rest.add(std::vector<float>{2, /**/ 4});
  part += rest;
  EXPECT_DOUBLE_EQ(part.cosine(0, 1), whole.cosine(0, 1));
}

TEST(GramTest, VectorsOfZerosHaveNoDistance) {
  Gram gram(3);
  gram.add(std::vector<float>{0, 0, /**/ 1, 2, /**/ 2, 4});
  EXPECT_EQ(gram.cosine(0, 1), 0);
  EXPECT_NEAR(gram.distances()->most, 0, 1e-15) << "of the only pair";
  Gram zeros(2);
  zeros.add(std::vector<float>{0, /**/ 1});
  EXPECT_FALSE(zeros.distances());
  EXPECT_FALSE(Gram(1).distances());
}

}  // namespace
}  // namespace train::similarity
