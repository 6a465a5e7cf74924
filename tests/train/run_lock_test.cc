#include "train/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"
#include "train/run_folder.h"

namespace train {
namespace {

namespace fs = std::filesystem;

TEST(RunLockTest, IsHadByOne) {
  const Folder folder;
  const fs::path run = folder / "deep/run";
  std::optional<RunLock> lock = RunLock::take(run);
  ASSERT_TRUE(lock);
  EXPECT_FALSE(RunLock::take(run));
  EXPECT_TRUE(RunLock::take(folder / "deep/other"));
  const std::optional<RunLock> moved = std::move(lock);
  EXPECT_FALSE(RunLock::take(run));
}

TEST(RunLockTest, GoesWithItsObject) {
  const Folder folder;
  { const auto lock = RunLock::take(folder / "run"); }
  EXPECT_TRUE(RunLock::take(folder / "run"));
}

// As where it is killed.
TEST(RunLockTest, GoesWithItsProcess) {
  const Folder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = RunLock::take(folder / "run");
    ::_exit(lock ? 0 : 1);  // without destructors
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(RunLock::take(folder / "run"));
}

TEST(RunLockTest, FollowsNoLinkAndKeepsNobodyOutOfWhatCannotBeLocked) {
  const Folder folder;
  fs::create_directories(folder / "run");
  fs::create_symlink(folder / "target", folder / "run" / RunLock::kFile);
  EXPECT_TRUE(RunLock::take(folder / "run"));
  EXPECT_FALSE(fs::exists(folder / "target"));
  std::ofstream(folder / "file") << "x";
  EXPECT_TRUE(RunLock::take(folder / "file"));
}

TEST(RunLockTest, AFolderWithALockAloneIsFree) {
  const Folder folder;
  Request request;
  request.task = "synthetic";
  request.method = "dense";
  Config config = resolve(request);
  config.steps = 10;
  const auto lock = RunLock::take(folder / "run");
  EXPECT_NO_THROW(RunFolder::create(folder / "run", config));
  std::ofstream(folder / "other") << "x";
  EXPECT_THROW(RunFolder::create(folder / ".", config), scalecom::core::UsageError);
}

}  // namespace
}  // namespace train
