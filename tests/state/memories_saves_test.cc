#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>

#include "scalecom/core/error.h"
#include "scalecom/state/file.h"
#include "scalecom/state/memory_set.h"
#include "tests/state/saved_arrays.h"
#include "tests/state/temporary_folder.h"

// Which of several saves is loaded, and what is left of one that was cut short.
namespace scalecom::state {
namespace {

// What a save in a folder of its own wrote, beside what is there: sets that do not see each other.
void save_beside(const std::filesystem::path& folder, int world, std::int64_t step,
                 std::int64_t number) {
  const TemporaryFolder other;
  for (int rank = 0; rank < world; ++rank) save_numbered(other.path(), rank, world, step, number);
  std::filesystem::copy(other.path(), folder);
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
