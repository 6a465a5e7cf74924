#include "train/similarity/saved.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/state/memories.h"
#include "tests/train/folder.h"

namespace train::similarity {
namespace {

namespace state = scalecom::state;

void save(const std::filesystem::path& folder, const std::vector<std::vector<float>>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<float> constant(70'000, static_cast<float>(r + 1));  // more than one piece
    state::RankMemories memories{"scalecom", 9, {{"a", ranks[r]}, {"b", constant}}, {}};
    state::save(folder, static_cast<int>(r), static_cast<int>(ranks.size()), memories);
  }
}

TEST(SimilarityTest, MeasuresNormsAndAngles) {
  const Folder folder;
  save(folder / "", {{3, 4}, {-4, 3}});
  const Similarity similarity = measure(folder / "");
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
  const Similarity similarity = measure(folder / "");
  EXPECT_EQ(similarity.mean_distance(), 0);
  EXPECT_EQ(similarity.cosine[0][0], 0);
}

TEST(SimilarityTest, DamagedFilesAreRefused) {
  const Folder folder;
  EXPECT_THROW(measure(folder / ""), scalecom::core::UsageError);
  save(folder / "", {{3, 4}, {-4, 3}});
  const auto file = folder / "rank-00001-of-00002.safetensors";
  ASSERT_TRUE(std::filesystem::exists(file));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 4);
  EXPECT_THROW(measure(folder / ""), scalecom::core::UsageError);
}

TEST(SimilarityTest, AWrongNumberIsRefused) {
  const Folder folder;
  save(folder / "", {{3, 4}, {-4, 3}, {1, 1}});
  for (const char* name : {"rank-00000-of-00003.safetensors", "rank-00002-of-00003.safetensors"}) {
    const auto file = folder / name;
    const auto flip = [&] {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(-1, std::ios::end);
      const char last = static_cast<char>(stream.get() ^ 1);
      stream.seekp(-1, std::ios::end);
      stream.put(last);
    };
    flip();
    const std::string message =
        message_of<scalecom::core::UsageError>([&] { measure(folder / ""); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("checksum of tensor 'b'"), std::string::npos) << message;
    flip();
  }
  EXPECT_NO_THROW(measure(folder / ""));
}

TEST(SimilarityTest, AMissingPartIsRefused) {
  const Folder folder;
  const std::vector<float> values(100, 1.0F);
  for (int rank = 0; rank < 4; ++rank) {
    state::RankMemories memories{"scalecom", 9, {}, {}, scalecom::methods::Learner{rank / 2, 2}};
    memories.named.push_back({rank % 2 == 0 ? "a[0:100]" : "a[150:250]", values});
    state::save(folder / "", rank, 4, memories);
  }
  const std::string message = message_of<scalecom::core::UsageError>([&] { measure(folder / ""); });
  EXPECT_NE(message.find("elements 100 to 150 of tensor 'a'"), std::string::npos) << message;
}

TEST(SimilarityTest, EveryFileIsReadOnce) {
  const Folder folder;
  save(folder / "", std::vector<std::vector<float>>(6, {3, 4}));
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder / "")) {
    bytes += file.file_size();
  }
  const auto read_so_far = [] {
    std::ifstream counters("/proc/self/io");
    std::string word;
    std::uintmax_t count = 0;
    counters >> word >> count;  // rchar: what was read, from the disk or not
    return count;
  };
  const std::uintmax_t before = read_so_far();
  if (before == 0) GTEST_SKIP() << "the system does not count what is read";
  measure(folder / "");
  EXPECT_LT(read_so_far() - before, bytes + bytes / 10);  // headers are read twice
}

}  // namespace
}  // namespace train::similarity
