#include "train/runs/run_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"
#include "train/runs/run_folder.h"

namespace train::runs {
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

TEST(RunLockTest, OneThatIsGivenAnotherRunLetsTheFirstGo) {
  const Folder folder;
  std::optional<RunLock> lock = RunLock::take(folder / "first");
  ASSERT_TRUE(lock);
  *lock = *RunLock::take(folder / "second");
  EXPECT_TRUE(RunLock::take(folder / "first"));
  EXPECT_FALSE(RunLock::take(folder / "second"));
}

// A program that is started meanwhile may outlive the run.
TEST(RunLockTest, IsNotHandedOnToOtherPrograms) {
  const Folder folder;
  const auto lock = RunLock::take(folder / "run");
  const fs::path file = fs::canonical(folder / "run" / RunLock::kFile);
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) != file) continue;
    ++found;
    EXPECT_NE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(found, 1);
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
}  // namespace train::runs
