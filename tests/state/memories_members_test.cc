#include <gtest/gtest.h>

#include "scalecom/methods/method.h"
#include "scalecom/state/memory_set.h"
#include "tests/state/saved_arrays.h"
#include "tests/state/temporary_folder.h"

// Memories that the members of a group share.
namespace scalecom::state {
namespace {

// Rank `rank` of a group of two that shares one memory.
void save_member(const std::filesystem::path& folder, int rank, const Arrays& arrays) {
  RankMemories memories{"scalecom", 1, {}, "", methods::Learner{0, 1}};
  for (const auto& [name, data] : arrays) memories.named.push_back({name, data});
  save(folder, rank, 2, memories);
}

std::string refusal_of_members(const Arrays& one, const Arrays& other) {
  const TemporaryFolder folder;
  save_member(folder.path(), 0, one);
  save_member(folder.path(), 1, other);
  return load_refusal(folder.path());
}

TEST(Memories, PartsOfAGroupAreJoined) {
  const TemporaryFolder folder;
  // A part without elements, one that both have, and a whole that is older than the parts.
  save_member(folder.path(), 0, {{"fc[0:0]", {}}, {"fc[2:3]", {7}}, {"b[0:1]", {8}}, {"w", {9}}});
  save_member(folder.path(), 1, {{"fc[0:2]", {5, 6}}, {"fc[2:3]", {7}}, {"b", {1, 2}}});
  const Loaded loaded = load(folder.path(), 0, 1);
  expect_same_bits(loaded, {{"fc", {5, 6, 7}}, {"b", {8}}, {"w", {9}}});
}

TEST(Memories, PartsThatDoNotFitTogetherAreRefused) {
  const auto some = [](std::size_t count) { return std::vector<float>(count, 1.0F); };
  EXPECT_TRUE(has(refusal_of_members({{"fc[0:200]", some(200)}, {"fc[200:300]", some(100)}},
                                     {{"fc[0:100]", some(100)}}),
                  "elements 0 to 100 of tensor 'fc' twice"));
  EXPECT_TRUE(has(refusal_of_members({{"fc[0:200]", some(200)}}, {{"fc[50:100]", some(50)}}),
                  "elements 50 to 100 of tensor 'fc' twice"));
  EXPECT_TRUE(has(refusal_of_members({{"fc[0:200]", some(200)}}, {{"fc[100:300]", some(200)}}),
                  "elements 100 to 200 of tensor 'fc' twice"));
  EXPECT_TRUE(has(refusal_of_members({{"fc[0:200]", some(200)}}, {{"fc[250:300]", some(50)}}),
                  "no memory of elements 200 to 250 of tensor 'fc'"));
  EXPECT_TRUE(has(refusal_of_members({{"fc[0:200]", some(100)}}, {{"fc[200:300]", some(100)}}),
                  "100 elements in 'fc[0:200]'"));
  EXPECT_TRUE(has(refusal_of_members({{"fc[0:9223372036854775807]", some(1)}}, {}),
                  "1 elements in 'fc[0:9223372036854775807]'"));
}

// Files whose headers are sound, each by itself.
TEST(Memories, LearnersThatCannotBeAreRefused) {
  const TemporaryFolder folder;
  const auto load_learners = [&](const std::vector<methods::Learner>& learners) {
    const auto world = static_cast<int>(learners.size());
    for (int rank = 0; rank < world; ++rank) {
      write_safetensors(
          folder / file_name(rank, world), {},
          to_metadata({"m", 1, "", world, rank, learners[static_cast<std::size_t>(rank)]}, {}, {}));
    }
    const std::string message = load_refusal(folder.path());
    for (int rank = 0; rank < world; ++rank) {
      std::filesystem::remove(folder / file_name(rank, world));
    }
    return message;
  };
  EXPECT_EQ(load_learners({{0, 2}, {0, 2}, {1, 2}, {1, 2}}), "");
  EXPECT_TRUE(has(load_learners({{0, 2}, {0, 2}, {0, 2}, {1, 2}}), "different numbers of ranks"));
  EXPECT_TRUE(has(load_learners({{0, 2}, {0, 2}, {1, 2}, {2, 2}}), "it is of learner 2 of 2"));
  EXPECT_TRUE(has(load_learners({{0, 1}, {1, 2}}), "number of learners '2'"));
  EXPECT_TRUE(has(load_learners({{0, 3}, {1, 3}}), "3 learners of 2 ranks"));
  EXPECT_TRUE(has(load_learners({{0, 2}, {1, 2}, {0, 2}}), "2 learners of 3 ranks"));
}

}  // namespace
}  // namespace scalecom::state
