#include "scalecom/state/memories.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/methods/method.h"
#include "scalecom/state/memory_file.h"
#include "scalecom/state/safetensors.h"
#include "tests/state/saved_arrays.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

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

}  // namespace
}  // namespace scalecom::state
