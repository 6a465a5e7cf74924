#include "train/similarity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/state/memory_file.h"
#include "tests/train/folder.h"

namespace train {
namespace {

namespace state = scalecom::state;

void save(const std::filesystem::path& folder, const std::vector<std::vector<float>>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<float> constant(70'000, static_cast<float>(r + 1));  // more than one piece
    state::Memories memories{"scalecom", 9, {{"a", ranks[r]}, {"b", constant}}, {}};
    state::save(folder, static_cast<int>(r), static_cast<int>(ranks.size()), memories);
  }
}

TEST(SimilarityTest, MeasuresNormsAndAngles) {
  const Folder folder;
  save(folder / "", {{3, 4}, {-4, 3}});
  const Similarity similarity = measure_similarity(folder / "");
  EXPECT_EQ(similarity.method, "scalecom");
  EXPECT_EQ(similarity.step, 9);
  ASSERT_EQ(similarity.tensors.size(), 2U);
  EXPECT_DOUBLE_EQ(similarity.tensors[0].norms[1], 5);
  const double a = 25 + 70'000.0;
  const double b = 25 + 4 * 70'000.0;
  EXPECT_DOUBLE_EQ(similarity.norms[0], std::sqrt(a));
  EXPECT_DOUBLE_EQ(similarity.cosine[0][1], 2 * 70'000.0 / std::sqrt(a * b));
  EXPECT_DOUBLE_EQ(similarity.cosine[1][0], similarity.cosine[0][1]);
  EXPECT_DOUBLE_EQ(similarity.mean_distance(), 1 - similarity.cosine[0][1]);
}

TEST(SimilarityTest, NothingIsLikeNothing) {
  const Folder folder;
  state::save(folder / "", 0, 1, {"dense", 3, {}, {}});
  const Similarity similarity = measure_similarity(folder / "");
  EXPECT_EQ(similarity.mean_distance(), 0);
  EXPECT_EQ(similarity.cosine[0][0], 0);
}

TEST(SimilarityTest, DamagedFilesAreRefused) {
  const Folder folder;
  EXPECT_THROW(measure_similarity(folder / ""), scalecom::core::UsageError);
  save(folder / "", {{3, 4}, {-4, 3}});
  const auto file = folder / "rank-00001-of-00002.safetensors";
  ASSERT_TRUE(std::filesystem::exists(file));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 4);
  EXPECT_THROW(measure_similarity(folder / ""), scalecom::core::UsageError);
}

}  // namespace
}  // namespace train
