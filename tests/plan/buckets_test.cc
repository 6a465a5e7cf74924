#include "scalecom/plan/buckets.h"

#include <gtest/gtest.h>

namespace scalecom::plan {
namespace {

Model of_layers(const std::vector<std::int64_t>& elements) {
  Model model{"m", "s", {}};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    model.layers.push_back({name, {{name + ".w", {1, elements[i]}}, {name + ".b", {1}}}, 8});
  }
  return model;
}

TEST(Buckets, AreCutFromTheLastLayerToTheFirst) {
  constexpr std::int64_t kMega = 1 << 18;  // floats of a MiB
  const Model model = of_layers({12 * kMega, 13 * kMega, 30 * kMega, kMega});
  const auto buckets = cut_buckets(model, kBucketBytes);
  ASSERT_EQ(buckets.size(), 3U);
  // The last layer fills the first, shorter one; the next alone is more than a whole one.
  const auto names = [](const Bucket& bucket) {
    std::string all;
    for (const layout::Tensor& tensor : bucket.tensors) all += tensor.name + " ";
    return all;
  };
  EXPECT_EQ(names(buckets[0]), "d.b d.w ");
  EXPECT_EQ(names(buckets[1]), "c.b c.w ");
  EXPECT_EQ(names(buckets[2]), "b.b b.w a.b a.w ");
  EXPECT_EQ(buckets[0].ready_after, 0U);
  EXPECT_EQ(buckets[1].ready_after, 1U);
  EXPECT_EQ(buckets[2].ready_after, 3U);
}

TEST(Buckets, AreOneWhereItHasRoomForAll) {
  EXPECT_EQ(cut_buckets(of_layers({1 << 20, 6, 7}), 1e9).size(), 1U);
}

TEST(Buckets, TheFirstIsClosedAtAMiB) {
  constexpr std::int64_t kMega = 1 << 18;
  const Model model = of_layers({kMega, kMega, 3 * kMega / 4, kMega / 2});
  const auto buckets = cut_buckets(model, kBucketBytes);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].ready_after, 1U);
  // Another size has no shorter one.
  EXPECT_EQ(cut_buckets(model, kBucketBytes - 1).size(), 1U);
}

TEST(Buckets, EachHasAllItsRoomWhateverTheOneBeforeTook) {
  const auto buckets = cut_buckets(of_layers({5, 20, 300}), 100);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[1].tensors.size(), 4U);
}

TEST(Buckets, HoldEveryTensorOnce) {
  for (const std::string& name : built_in_models()) {
    const Model model = built_in_model(name);
    std::int64_t elements = 0;
    std::size_t after = 0;
    for (const Bucket& bucket : cut_buckets(model, kBucketBytes)) {
      for (const layout::Tensor& tensor : bucket.tensors) elements += tensor.elements();
      EXPECT_GE(bucket.ready_after, after);
      after = bucket.ready_after;
    }
    EXPECT_EQ(elements, model.elements()) << name;
    EXPECT_EQ(after, model.layers.size() - 1) << name;
  }
}

TEST(Buckets, FlopsPerGradientAreThoseOfABatch) {
  const auto tensors = tensors_of(of_layers({4}), 10);
  EXPECT_EQ(tensors[0].flops_per_gradient, 20);
  // Without a matrix there is nothing to share out, and no division by 0.
  const Model norm{"m", "s", {{"n", {{"n.w", {4}}}}}};
  EXPECT_EQ(tensors_of(norm, 10).front().flops_per_gradient, 0);
}

}  // namespace
}  // namespace scalecom::plan
