#include "scalecom/state/memories.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/methods/method.h"
#include "scalecom/state/file.h"
#include "scalecom/state/memory_set.h"
#include "scalecom/state/safetensors.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

using Arrays = std::map<std::string, std::vector<float>>;

constexpr const char* kMethod = "scalecom,rate=100,beta=0.1";

void save_arrays(const std::filesystem::path& folder, int rank, int world, const Arrays& arrays,
                 std::int64_t step = 7, const std::string& method = kMethod,
                 const std::string& tag = "", std::int64_t number = 0) {
  RankMemories memories{method, step, {}, tag};
  memories.number = number;
  for (const auto& [name, data] : arrays) memories.named.push_back({name, data});
  save(folder, rank, world, memories);
}

// Over a block and a half, short, one element, none.
Arrays random_arrays(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  Arrays arrays{{"large", std::vector<float>(100000)},
                {"layer.größe\n", std::vector<float>(100)},
                {"one", std::vector<float>(1)},
                {"none", {}}};
  for (auto& [name, data] : arrays) {
    for (float& x : data) x = normal(random) * std::exp(5 * normal(random));
  }
  return arrays;
}

std::vector<Arrays> save_world(const std::filesystem::path& folder, int world,
                               std::int64_t step = 7, std::int64_t number = 0) {
  std::vector<Arrays> all;
  for (int rank = 0; rank < world; ++rank) {
    all.push_back(random_arrays(100 * world + rank));
    save_arrays(folder, rank, world, all.back(), step, kMethod, "", number);
  }
  return all;
}

// One rank's file of a save with a number.
void save_numbered(const std::filesystem::path& folder, int rank, int world, std::int64_t step,
                   std::int64_t number) {
  save_arrays(folder, rank, world, {{"w", {1, 2}}}, step, kMethod, "", number);
}

// What a save in a folder of its own wrote, beside what is there: sets that do not see each other.
void save_beside(const std::filesystem::path& folder, int world, std::int64_t step,
                 std::int64_t number) {
  const TemporaryFolder other;
  for (int rank = 0; rank < world; ++rank) save_numbered(other.path(), rank, world, step, number);
  std::filesystem::copy(other.path(), folder);
}

void expect_same_bits(const Loaded& loaded, const Arrays& arrays) {
  ASSERT_EQ(loaded.memories.size(), arrays.size());
  for (const auto& [name, data] : arrays) {
    const auto& read = loaded.memories.at(name);
    ASSERT_EQ(read.size(), static_cast<std::int64_t>(data.size()));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), read.begin(), [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    })) << name;
  }
}

std::string load_refusal(const std::filesystem::path& folder, int rank = 0, int world = 1) {
  return refusal<core::UsageError>([&] { load(folder, rank, world); });
}

TEST(Memories, TheSameNumberOfRanksGetsItsBitsBack) {
  const TemporaryFolder folder;
  const std::vector<Arrays> all = save_world(folder.path(), 4);
  for (int rank = 0; rank < 4; ++rank) {
    const Loaded loaded = load(folder.path(), rank, 4);
    EXPECT_EQ(loaded.method, kMethod);
    EXPECT_EQ(loaded.step, 7);
    expect_same_bits(loaded, all[static_cast<std::size_t>(rank)]);
  }
}

TEST(Memories, BitsThatAreNoNumbersComeBackToo) {
  const TemporaryFolder folder;
  Arrays arrays;
  for (const std::uint32_t bits : {0x80000000U, 1U, 0x7f800001U, 0xffc12345U, 0xff800000U}) {
    arrays["a"].push_back(std::bit_cast<float>(bits));
  }
  save_arrays(folder.path(), 0, 1, arrays);
  expect_same_bits(load(folder.path(), 0, 1), arrays);
}

TEST(Memories, OneFileARankThatAnyToolReads) {
  const TemporaryFolder folder;
  save_arrays(folder / "new" / "folder", 3, 8, {{"w", {1, 2}}}, 12, "m", "t");
  const SafetensorsReader reader(folder / "new" / "folder" / "rank-00003-of-00008.safetensors");
  Metadata metadata = reader.metadata();
  EXPECT_EQ(metadata.erase("sums"), 1U);
  EXPECT_EQ(metadata.erase("checksum"), 1U);
  EXPECT_EQ(metadata, (Metadata{{"format", "scalecom-memory"},
                                {"version", "1"},
                                {"method", "m"},
                                {"step", "12"},
                                {"tag", "t"},
                                {"world", "8"},
                                {"rank", "3"}}));
  EXPECT_EQ(reader.tensor("w").shape, std::vector<std::int64_t>{2});
}

TEST(Memories, NoMemoriesAtAll) {
  const TemporaryFolder folder;
  for (int rank = 0; rank < 2; ++rank) save_arrays(folder.path(), rank, 2, {}, 0, "dense");
  EXPECT_TRUE(load(folder.path(), 1, 2).memories.empty());
  EXPECT_TRUE(load(folder.path(), 1, 3).memories.empty());
}

TEST(Memories, DescribesWhatAFolderHolds) {
  const TemporaryFolder folder;
  save_world(folder.path(), 3);
  const Saved saved = describe(folder.path());
  EXPECT_EQ(saved.world, 3);
  EXPECT_EQ(saved.step, 7);
  EXPECT_EQ(saved.method, kMethod);
  EXPECT_EQ(saved.elements,
            (std::map<std::string, std::int64_t>{
                {"large", 100000}, {"layer.größe\n", 100}, {"one", 1}, {"none", 0}}));
}

class Redivision : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(From, Redivision, testing::Range(1, 9));

TEST_P(Redivision, KeepsTheMean) {
  const int old_world = GetParam();
  const TemporaryFolder folder;
  const std::vector<Arrays> all = save_world(folder.path(), old_world);
  for (int world = 1; world <= 8; ++world) {
    std::vector<Loaded> loaded;
    for (int rank = 0; rank < world; ++rank) loaded.push_back(load(folder.path(), rank, world));
    for (const auto& [name, first] : all.front()) {
      const std::size_t stride = first.size() > 1000 ? 61 : 1;
      for (std::size_t i = 0; i < first.size(); i += stride) {
        double before = 0;
        double after = 0;
        double largest = 0;
        for (const Arrays& arrays : all) {
          before += arrays.at(name)[i];
          largest = std::max(largest, std::abs(static_cast<double>(arrays.at(name)[i])));
        }
        for (const Loaded& one : loaded) {
          after += one.memories.at(name)[static_cast<std::int64_t>(i)];
        }
        ASSERT_NEAR(before / old_world, after / world, largest * 0x1p-24)
            << old_world << " to " << world << " " << name << " " << i;
      }
    }
    if (world == old_world) {
      for (int rank = 0; rank < world; ++rank) {
        expect_same_bits(loaded[static_cast<std::size_t>(rank)],
                         all[static_cast<std::size_t>(rank)]);
      }
    }
  }
}

TEST(Memories, RedivisionGoesByOverlap) {
  const TemporaryFolder folder;
  for (int rank = 0; rank < 3; ++rank) {
    save_arrays(folder.path(), rank, 3, {{"w", {rank == 0 ? 3.F : rank == 1 ? 30.F : 300.F}}});
  }
  const auto value = [&](int rank, int world) {
    return load(folder.path(), rank, world).memories.at("w")[0];
  };
  EXPECT_EQ(value(0, 1), 111);
  EXPECT_EQ(value(0, 2), static_cast<float>((2.0 * 3 + 1.0 * 30) / 3));
  EXPECT_EQ(value(1, 2), static_cast<float>((1.0 * 30 + 2.0 * 300) / 3));
  EXPECT_EQ(value(1, 4), static_cast<float>((1.0 * 3 + 2.0 * 30) / 3));
  EXPECT_EQ(value(5, 6), 300);
}

TEST(Memories, OnlyOverlappingFilesAreReadForData) {
  const TemporaryFolder folder;
  save_world(folder.path(), 4);
  // Damage in the data of the third rank's file, which ranks of the first half do not need.
  const std::filesystem::path last = folder / "rank-00002-of-00004.safetensors";
  std::string bytes = contents(last);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  put(last, bytes);
  EXPECT_EQ(load_refusal(folder.path(), 0, 2), "");
  const std::string message = load_refusal(folder.path(), 1, 2);
  EXPECT_TRUE(has(message, "rank-00002-of-00004.safetensors' is damaged")) << message;
}

TEST(Memories, IncompleteSets) {
  const TemporaryFolder folder;
  EXPECT_TRUE(has(load_refusal(folder.path()), "holds no memory files"));
  EXPECT_TRUE(has(load_refusal(folder / "none"), "cannot read folder"));
  save_world(folder.path(), 4);
  std::filesystem::remove(folder / "rank-00002-of-00004.safetensors");
  const std::string message = load_refusal(folder.path(), 0, 4);
  EXPECT_TRUE(has(message, "missing rank-00002-of-00004.safetensors")) << message;
}

TEST(Memories, OtherFilesArePassedOver) {
  const TemporaryFolder folder;
  const std::vector<Arrays> all = save_world(folder.path(), 2);
  for (const char* name :
       {"model.safetensors", "rank-0-of-1.safetensors", "rank-00009-of-00002.safetensors",
        "rank-00000-of-00002.safetensors.old", "rank-00000-of-00002-save-000000000.safetensors",
        "rank-00000-of-00002-save-7.safetensors", "rank-00000-of-00002-save--00000007.safetensors",
        ".scalecom-0123.tmp", "notes"}) {
    put(folder / name, "something else");
  }
  expect_same_bits(load(folder.path(), 1, 2), all[1]);
}

TEST(Memories, AnIncompleteSetOfAnotherSizeIsPassedOver) {
  const TemporaryFolder folder;
  const std::vector<Arrays> all = save_world(folder.path(), 2, 7);
  save_arrays(folder.path(), 0, 3, random_arrays(1), 9);
  expect_same_bits(load(folder.path(), 0, 2), all[0]);
  EXPECT_EQ(load(folder.path(), 0, 2).step, 7);
}

TEST(Memories, ASetTakesThePlaceOfOneOfAnotherSize) {
  const TemporaryFolder folder;
  save_world(folder.path(), 2, 7);
  const std::vector<Arrays> three = save_world(folder.path(), 3, 9);
  EXPECT_EQ(files_in(folder.path()), 3U);
  expect_same_bits(load(folder.path(), 2, 3), three[2]);
  // As after a restart from an earlier step.
  const std::vector<Arrays> one = save_world(folder.path(), 1, 4);
  EXPECT_EQ(files_in(folder.path()), 1U);
  expect_same_bits(load(folder.path(), 0, 1), one[0]);
}

TEST(Memories, OfSeveralCompleteSetsTheNewestIsLoaded) {
  const TemporaryFolder folder;
  save_beside(folder.path(), 2, 7, 0);
  save_beside(folder.path(), 3, 9, 0);
  save_beside(folder.path(), 1, 8, 0);
  EXPECT_EQ(describe(folder.path()).step, 9) << "the latest step";
  save_beside(folder.path(), 4, 8, 0);
  EXPECT_EQ(describe(folder.path()).step, 9) << "though more ranks have an earlier one";
  save_beside(folder.path(), 2, 5, 1);
  save_beside(folder.path(), 2, 6, 4);
  save_beside(folder.path(), 3, 3, 12);
  const Saved saved = describe(folder.path());
  EXPECT_EQ(saved.step, 3) << "the largest number";
  EXPECT_EQ(saved.world, 3);
  EXPECT_EQ(load(folder.path(), 0, 3).step, 3);
}

TEST(Memories, SetsThatNothingTellsApartAreRefused) {
  const TemporaryFolder folder;
  save_beside(folder.path(), 2, 7, 0);
  save_beside(folder.path(), 3, 7, 0);
  const std::string message = load_refusal(folder.path(), 0, 2);
  EXPECT_TRUE(has(message, "complete sets of 3 and 2 ranks, all of step 7")) << message;
}

// The last complete set is there and whole until every rank has written the next one.
TEST(Memories, ASaveThatIsCutShortLeavesTheOneBefore) {
  for (int written = 0; written <= 3; ++written) {
    const TemporaryFolder folder;
    const std::vector<Arrays> before = save_world(folder.path(), 3, 7);
    for (int rank = 0; rank < written; ++rank) save_numbered(folder.path(), rank, 3, 8, 1);
    const Loaded loaded = load(folder.path(), 1, 3);
    if (written < 3) {
      EXPECT_EQ(loaded.step, 7) << written;
      expect_same_bits(loaded, before[1]);
      // Nor does a next one that takes up its number at another step.
      save_numbered(folder.path(), 2, 3, 9, 1);
      EXPECT_EQ(load(folder.path(), 0, 3).step, 7) << written;
      save_numbered(folder.path(), 0, 3, 9, 1);
      save_numbered(folder.path(), 1, 3, 9, 1);
    }
    EXPECT_EQ(load(folder.path(), 0, 3).step, written < 3 ? 9 : 8);
    EXPECT_EQ(files_in(folder.path()), 3U) << "and then the older one is gone";
  }
}

// Files of one number may be of two saves, of which one was cut short.
TEST(Memories, AMixtureIsNoNewerSet) {
  const Arrays arrays{{"w", {1, 2}}};
  const auto loads_first = [&](std::int64_t step, const std::string& method,
                               const std::string& tag) {
    const TemporaryFolder folder;
    save_beside(folder.path(), 2, 7, 0);
    const TemporaryFolder other;
    save_arrays(other.path(), 0, 2, arrays, 8, "m", "t", 1);
    save_arrays(other.path(), 1, 2, arrays, step, method, tag, 1);
    std::filesystem::copy(other.path(), folder.path());
    return describe(folder.path()).step == 7;
  };
  EXPECT_FALSE(loads_first(8, "m", "t"));
  EXPECT_TRUE(loads_first(9, "m", "t"));
  EXPECT_TRUE(loads_first(8, "n", "t"));
  EXPECT_TRUE(loads_first(8, "m", "u"));
}

// As of a run that has gone back to an earlier step.
TEST(Memories, CompleteSetsOfLargerNumbersGo) {
  const TemporaryFolder folder;
  save_beside(folder.path(), 2, 9, 5);
  save_numbered(folder.path(), 0, 2, 4, 3);
  EXPECT_EQ(describe(folder.path()).step, 9);
  save_numbered(folder.path(), 1, 2, 4, 3);
  EXPECT_EQ(files_in(folder.path()), 2U);
  EXPECT_EQ(describe(folder.path()).step, 4);
}

TEST(Memories, ASaveWithAnotherNumberOfRanksThatIsCutShort) {
  const TemporaryFolder folder;
  save_world(folder.path(), 4, 7);
  save_numbered(folder.path(), 0, 2, 8, 1);
  EXPECT_EQ(load(folder.path(), 0, 2).step, 7);
  save_numbered(folder.path(), 1, 2, 8, 1);
  EXPECT_EQ(load(folder.path(), 0, 2).step, 8);
  EXPECT_EQ(files_in(folder.path()), 2U);
}

// A rank that is late with one save takes nothing from the next.
TEST(Memories, ASaveThatHasBegunStays) {
  const TemporaryFolder folder;
  save_world(folder.path(), 2, 7);
  save_numbered(folder.path(), 0, 2, 8, 1);
  save_numbered(folder.path(), 0, 2, 9, 2);
  save_numbered(folder.path(), 1, 2, 8, 1);
  EXPECT_EQ(load(folder.path(), 0, 2).step, 8);
  EXPECT_EQ(files_in(folder.path()), 3U);
  save_numbered(folder.path(), 1, 2, 9, 2);
  EXPECT_EQ(load(folder.path(), 0, 2).step, 9);
  EXPECT_EQ(files_in(folder.path()), 2U);
}

TEST(Memories, ADamagedSetIsNotPassedOver) {
  const TemporaryFolder folder;
  save_beside(folder.path(), 2, 7, 0);
  save_beside(folder.path(), 2, 8, 1);
  put(folder / "rank-00001-of-00002-save-000000001.safetensors", "");
  const std::string message = load_refusal(folder.path(), 0, 2);
  EXPECT_TRUE(has(message, "rank-00001-of-00002-save-000000001.safetensors")) << message;
}

TEST(Memories, NumbersOfSaves) {
  const TemporaryFolder folder;
  EXPECT_EQ(next_number(folder.path()), 0);
  EXPECT_EQ(next_number(folder / "none"), 0);
  put(folder / "model.safetensors", "something else");
  EXPECT_EQ(next_number(folder.path()), 0);
  EXPECT_EQ(next_number(folder / "model.safetensors"), 0) << "save() says that it is no folder";
  save_numbered(folder.path(), 1, 4, 7, 0);
  EXPECT_EQ(next_number(folder.path()), 1) << "incomplete ones count";
  save_numbered(folder.path(), 1, 2, 7, 12);
  EXPECT_EQ(next_number(folder.path()), 13);
  EXPECT_TRUE(std::filesystem::exists(folder / "rank-00001-of-00002-save-000000012.safetensors"));
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{1} << 60}) {
    EXPECT_THROW(save_numbered(folder.path(), 0, 1, 7, bad), core::UsageError);
  }
  save_numbered(folder / "last", 0, 1, 7, kMostSaves);
  EXPECT_EQ(describe(folder / "last").step, 7);
}

TEST(Memories, MixturesOfSavesAreRefused) {
  const TemporaryFolder folder;
  const Arrays arrays{{"w", {1, 2, 3}}};
  const auto refused_after = [&](const Arrays& other, std::int64_t step, const std::string& method,
                                 const std::string& tag) {
    for (int rank = 0; rank < 3; ++rank) save_arrays(folder.path(), rank, 3, arrays, 7, "m", "t");
    EXPECT_EQ(load_refusal(folder.path(), 0, 3), "");
    save_arrays(folder.path(), 2, 3, other, step, method, tag);
    const std::string message = load_refusal(folder.path(), 0, 3);
    EXPECT_TRUE(has(message, "rank-00002-of-00003.safetensors")) << message;
    return message;
  };
  EXPECT_TRUE(has(refused_after(arrays, 8, "m", "t"), "step '8'"));
  EXPECT_TRUE(has(refused_after(arrays, 7, "n", "t"), "method 'n'"));
  EXPECT_TRUE(has(refused_after(arrays, 7, "m", "u"), "tag 'u'"));
  EXPECT_TRUE(has(refused_after({{"w", {1, 2}}}, 7, "m", "t"), "2 elements in tensor 'w'"));
  EXPECT_TRUE(has(refused_after({{"v", {1, 2, 3}}}, 7, "m", "t"), "tensor 'v'"));
  EXPECT_TRUE(has(refused_after({}, 7, "m", "t"), "no tensor 'w'"));
}

TEST(Memories, AFileThatIsReplacedWhileItIsReadIsRefused) {
  const TemporaryFolder folder;
  const Arrays arrays{{"w", {1, 2, 3}}};
  for (int rank = 0; rank < 2; ++rank) save_arrays(folder.path(), rank, 2, arrays);
  const CheckedSet set = check_set(folder.path());
  const auto message = [&] {
    return refusal<core::UsageError>([&] { set.open(folder.path(), 1, 0); });
  };
  EXPECT_EQ(message(), "");
  save_arrays(folder.path(), 1, 2, arrays, 8);
  EXPECT_TRUE(has(message(), "not of one save")) << message();
  save_arrays(folder.path(), 1, 2, {{"w", {1, 2}}});
  EXPECT_TRUE(has(message(), "2 elements in tensor 'w'")) << message();
}

TEST(Memories, ForeignAndRenamedFilesAreRefused) {
  const TemporaryFolder folder;
  save_numbered(folder.path(), 0, 1, 7, 0);
  std::filesystem::rename(folder / file_name(0, 1), folder / file_name(0, 2));
  save_numbered(folder.path(), 1, 2, 7, 0);
  EXPECT_TRUE(has(load_refusal(folder.path()), "has been renamed: it is of rank 0 of 1"));
  save_world(folder.path(), 2);
  const std::filesystem::path first = folder / "rank-00000-of-00002.safetensors";
  std::filesystem::copy_file(folder / "rank-00001-of-00002.safetensors", first,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(has(load_refusal(folder.path()), "has been renamed: it is of rank 1 of 2"));
  put(first, "");
  EXPECT_TRUE(has(load_refusal(folder.path()), "truncated or no safetensors"));
  const std::vector<float> data{1};
  const std::vector<TensorView> tensors{{"w", {1}, data}};
  write_safetensors(first, tensors, {});
  EXPECT_TRUE(has(load_refusal(folder.path()), "holds no memories"));
  write_safetensors(first, tensors, {{"format", "scalecom-memory"}, {"version", "2"}});
  EXPECT_TRUE(has(load_refusal(folder.path()), "is of version 2; version 1 is known"));
  write_safetensors(first, tensors, {{"format", "scalecom-memory"}, {"version", "1"}});
  EXPECT_TRUE(has(load_refusal(folder.path()), "has no 'method'"));
  std::filesystem::remove(first);
  std::filesystem::create_directory(first);
  EXPECT_TRUE(has(load_refusal(folder.path()), "is not a plain file"));
}

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

TEST(Memories, RanksAndStepsThatCannotBe) {
  const TemporaryFolder folder;
  for (const auto& [rank, world] : {std::pair(-1, 2), std::pair(2, 2), std::pair(0, 0)}) {
    EXPECT_THROW(save_arrays(folder.path(), rank, world, {}), core::UsageError);
    EXPECT_TRUE(has(load_refusal(folder.path(), rank, world), "counted from 0"));
  }
  EXPECT_THROW(save_arrays(folder.path(), 0, 1, {}, -1), core::UsageError);
  EXPECT_THROW(save_arrays(folder.path(), 0, 1, {}, methods::kMostSteps + 1), core::UsageError);
  RankMemories twice{"m", 0, {{"a", {}}, {"a", {}}}, ""};
  EXPECT_THROW(save(folder.path(), 0, 1, twice), core::UsageError);
  EXPECT_EQ(files_in(folder.path()), 0U);
}

// A method that is restored counts on from there.
TEST(Memories, AStepThatCannotBeCountedOnIsRefused) {
  const TemporaryFolder folder;
  const auto load_step = [&](std::int64_t step) {
    write_safetensors(folder / "rank-00000-of-00001.safetensors", {},
                      to_metadata({"m", step, "", 1, 0, {0, 1}}, {}, {}));
    return load_refusal(folder.path());
  };
  EXPECT_EQ(load_step(methods::kMostSteps), "");
  EXPECT_TRUE(has(load_step(methods::kMostSteps + 1), "its step is '9007199254740993'"));
  EXPECT_TRUE(has(load_step(std::numeric_limits<std::int64_t>::max()), "is damaged: its step"));
}

// What a save that was killed has left, a minute before the files that are there now.
std::filesystem::path leave_behind(const std::filesystem::path& folder, const char* name) {
  put(folder / name, "half of a memory");
  using std::chrono::minutes;
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(folder / name, now - minutes(1));
  return folder / name;
}

constexpr const char* kTemporary = ".scalecom-0123456789abcdef.tmp";

TEST(Memories, WhatAKilledSaveLeftGoesWhenASetIsComplete) {
  const TemporaryFolder folder;
  const std::filesystem::path killed = leave_behind(folder.path(), kTemporary);
  const std::vector<std::filesystem::path> foreign{
      leave_behind(folder.path(), ".scalecom-mine.tmp"),
      leave_behind(folder.path(), ".scalecom-0123.tmp"), folder / ".scalecom-fedcba9876543210.tmp"};
  std::filesystem::create_directory(foreign.back());
  std::filesystem::last_write_time(foreign.back(), std::filesystem::last_write_time(killed));
  save_numbered(folder.path(), 0, 2, 7, 1);
  EXPECT_TRUE(std::filesystem::exists(killed)) << "rank 1 may be writing it";
  save_numbered(folder.path(), 1, 2, 7, 1);
  EXPECT_FALSE(std::filesystem::exists(killed));
  for (const auto& path : foreign) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_EQ(load(folder.path(), 0, 2).step, 7);
}

// Rank 0 has begun the next save when rank 1 ends this one.
TEST(Memories, WhatIsBeingWrittenStays) {
  const TemporaryFolder folder;
  save_numbered(folder.path(), 0, 2, 7, 1);
  NewFile next(folder / "rank-00000-of-00002-save-000000002.safetensors");
  save_numbered(folder.path(), 1, 2, 7, 1);
  EXPECT_EQ(temporary_files(folder.path()).size(), 1U);
  next.commit();
  EXPECT_TRUE(std::filesystem::exists(folder / "rank-00000-of-00002-save-000000002.safetensors"));
}

TEST(Memories, AFolderThatCannotBeWritten) {
  const TemporaryFolder folder;
  put(folder / "file", "plain");
  for (const std::filesystem::path& path :
       {folder / "file", folder / "file" / "sub", std::filesystem::path("/proc/self/memories")}) {
    const std::string message = refusal<core::IoError>([&] {
      save_arrays(path, 0, 1, {{"w", {1}}});
    });
    EXPECT_TRUE(has(message, path.string())) << message;
  }
}

TEST(Memories, AFullDiskLeavesTheOlderSave) {
  const TemporaryFolder folder;
  const std::vector<Arrays> all = save_world(folder.path(), 1);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{50000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message =
      refusal<core::IoError>([&] { save_arrays(folder.path(), 0, 1, random_arrays(9), 8); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(has(message, "rank-00000-of-00001.safetensors': File too large")) << message;
  EXPECT_EQ(files_in(folder.path()), 1U);
  expect_same_bits(load(folder.path(), 0, 1), all[0]);
}

}  // namespace
}  // namespace scalecom::state
