#include "scalecom/state/file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// No file of this process may grow beyond this while it lives: a disk that is full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t most) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{most, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

// What is asked of the system while it lives, in order. The next call of the name `refused` fails
// with `error`; a write takes no more than `at_once` bytes.
class Calls {
 public:
  Calls() { watching_ = this; }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() { watching_ = nullptr; }

  static Calls* watching() { return watching_; }

  bool refuses(const std::string& name) {
    seen.push_back(name);
    if (name != refused) return false;
    refused.clear();
    errno = error;
    return true;
  }

  std::vector<std::string> seen;
  std::string refused;
  int error = 0;
  std::size_t at_once = SIZE_MAX;

 private:
  static inline Calls* watching_ = nullptr;
};

template <typename Function>
Function* libc(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string kind_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode) ? "folder" : "file";
}

}  // namespace
}  // namespace scalecom::state

// These take the place of libc's in this program.
extern "C" {

int fsync(int descriptor) {
  using namespace scalecom::state;
  Calls* const calls = Calls::watching();
  if (calls != nullptr && calls->refuses("sync " + kind_of(descriptor))) return -1;
  return libc<int(int)>("fsync")(descriptor);
}

// Refused or not, the descriptor is gone.
int close(int descriptor) {
  using namespace scalecom::state;
  Calls* const calls = Calls::watching();
  const bool refused = calls != nullptr && calls->refuses("close " + kind_of(descriptor));
  const int result = libc<int(int)>("close")(descriptor);
  if (!refused) return result;
  errno = calls->error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  using namespace scalecom::state;
  Calls* const calls = Calls::watching();
  if (calls != nullptr && calls->refuses("rename")) return -1;
  return libc<int(const char*, const char*)>("rename")(from, to);
}

ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  using namespace scalecom::state;
  Calls* const calls = Calls::watching();
  if (calls != nullptr && calls->refuses("write")) return -1;
  if (calls != nullptr) count = std::min(count, calls->at_once);
  return libc<ssize_t(int, const void*, std::size_t)>("write")(descriptor, bytes, count);
}

}  // extern "C"

namespace scalecom::state {
namespace {

TEST(NewFile, AppearsWhenCommitted) {
  const TemporaryFolder folder;
  NewFile file(folder / "a");
  file.write(bytes("hel"));
  file.write(bytes(""));
  file.write(bytes("lo"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(contents(folder / "a"), "hello");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(NewFile, WithoutCommitLeavesTheOldOne) {
  const TemporaryFolder folder;
  put(folder / "a", "old");
  {
    NewFile file(folder / "a");
    file.write(bytes("new"));
  }
  EXPECT_EQ(contents(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(NewFile, ReplacesALinkAndNotWhatItPointsTo) {
  const TemporaryFolder folder;
  put(folder / "kept", "old");
  std::filesystem::create_symlink("kept", folder / "a");
  NewFile file(folder / "a");
  file.write(bytes("new"));
  file.commit();
  EXPECT_EQ(contents(folder / "a"), "new");
  EXPECT_EQ(contents(folder / "kept"), "old");
}

TEST(NewFile, AFullDiskLeavesTheOldOne) {
  const TemporaryFolder folder;
  put(folder / "a", "old");
  {
    const FileSizeLimit limit(10000);
    const std::string message = refusal<core::IoError>([&] {
      NewFile file(folder / "a");
      file.write(bytes(std::string(9999, 'x')));
      file.write(bytes(std::string(9999, 'y')));
      file.commit();
    });
    EXPECT_TRUE(has(message, "cannot write '" + (folder / "a").string() + "': File too large"))
        << message;
  }
  EXPECT_EQ(contents(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

// Else a loss of power leaves a name without its content, or with half of it.
TEST(NewFile, IsOnTheDiskBeforeItHasItsName) {
  const TemporaryFolder folder;
  NewFile file(folder / "a");
  file.write(bytes("new"));
  Calls calls;
  file.commit();
  const std::vector<std::string> order{"sync file", "close file", "rename", "sync folder",
                                       "close folder"};
  EXPECT_EQ(calls.seen, order);
}

TEST(NewFile, ADiskThatFailsAtTheEndLeavesTheOldOne) {
  const TemporaryFolder folder;
  put(folder / "a", "old");
  for (const std::string refused : {"sync file", "close file", "rename"}) {
    Calls calls;
    calls.refused = refused;
    calls.error = EIO;
    const std::string message = refusal<core::IoError>([&] {
      NewFile file(folder / "a");
      file.write(bytes("new"));
      file.commit();
    });
    EXPECT_TRUE(has(message, "Input/output error")) << refused << ": " << message;
    EXPECT_EQ(contents(folder / "a"), "old") << refused;
    EXPECT_EQ(files_in(folder.path()), 1U) << refused;
  }
  // Not every file system can do that with a folder.
  Calls calls;
  calls.refused = "sync folder";
  calls.error = EINVAL;
  NewFile file(folder / "a");
  file.write(bytes("new"));
  file.commit();
  EXPECT_EQ(contents(folder / "a"), "new");
}

TEST(NewFile, WritesThatAreInterruptedGoOn) {
  const TemporaryFolder folder;
  NewFile file(folder / "a");
  {
    Calls calls;
    calls.refused = "write";
    calls.error = EINTR;
    calls.at_once = 3;
    file.write(bytes("0123456789"));
    EXPECT_EQ(calls.seen.size(), 5U);
  }
  file.commit();
  EXPECT_EQ(contents(folder / "a"), "0123456789");
}

TEST(NewFile, TakesNoPlaceOfADeviceOrAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    const std::string message =
        refusal<core::UsageError>([&] { const NewFile file(folder / name); });
    EXPECT_TRUE(has(message, "is no plain file")) << name << ": " << message;
  }
  EXPECT_EQ(files_in(folder.path()), 2U);
}

TEST(NewFile, FoldersThatCannotBeWritten) {
  const TemporaryFolder folder;
  put(folder / "file", "plain");
  const auto message = [](const std::filesystem::path& path) {
    return refusal<core::IoError>([&] { const NewFile file(path); });
  };
  EXPECT_TRUE(has(message(folder / "none" / "a"), "No such file or directory"));
  EXPECT_TRUE(has(message(folder / "file" / "a"), "Not a directory"));
  EXPECT_TRUE(has(message("/proc/self/a"), "'/proc/self/a': "));
  if (geteuid() != 0) {
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read);
    EXPECT_TRUE(has(message(folder / "a"), "Permission denied"));
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
  }
}

TEST(NewFile, ATargetThatCannotBeReplaced) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a" / "b");
  const std::string message = refusal<core::IoError>([&] {
    NewFile file(folder / "a");
    file.commit();
  });
  EXPECT_TRUE(has(message, "cannot replace")) << message;
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(Append, AddsToTheEnd) {
  const TemporaryFolder folder;
  append(folder / "a", bytes("one\n"));
  append(folder / "a", bytes("two\n"));
  EXPECT_EQ(contents(folder / "a"), "one\ntwo\n");
}

TEST(Append, IsOnTheDiskWhenItReturns) {
  const TemporaryFolder folder;
  Calls calls;
  append(folder / "a", bytes("one\n"));
  const std::vector<std::string> order{"write", "sync file", "close file"};
  EXPECT_EQ(calls.seen, order);
  calls.refused = "sync file";
  calls.error = EIO;
  EXPECT_THROW(append(folder / "a", bytes("two\n")), core::IoError);
}

TEST(Append, FollowsNoLink) {
  const TemporaryFolder folder;
  put(folder / "kept", "old");
  std::filesystem::create_symlink("kept", folder / "a");
  EXPECT_THROW(append(folder / "a", bytes("new")), core::IoError);
  EXPECT_EQ(contents(folder / "kept"), "old");
}

TEST(Append, SaysWhyItCannot) {
  const TemporaryFolder folder;
  const std::string message =
      refusal<core::IoError>([&] { append(folder / "none" / "a", bytes("new")); });
  EXPECT_TRUE(has(message, "No such file or directory")) << message;
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(append("/dev/full", bytes("new")), core::IoError);
  }
}

TEST(File, ReadsFromAnywhere) {
  const TemporaryFolder folder;
  put(folder / "a", "0123456789");
  const File file = File::open(folder / "a");
  EXPECT_EQ(file.size(), 10);
  std::string out(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, "3456");
  file.read(10, {});
  const std::string message =
      refusal<core::UsageError>([&] { file.read(8, std::as_writable_bytes(std::span(out))); });
  EXPECT_TRUE(has(message, "is truncated")) << message;
}

TEST(File, OpensPlainFilesOnly) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto message = [](const std::filesystem::path& path) {
    return refusal<core::UsageError>([&] { File::open(path); });
  };
  EXPECT_TRUE(has(message(folder / "none"), "No such file or directory"));
  EXPECT_TRUE(has(message(folder.path()), "is not a plain file"));
  EXPECT_TRUE(has(message(folder / "pipe"), "is not a plain file"));
  EXPECT_TRUE(has(message("/dev/zero"), "is not a plain file"));
}

}  // namespace
}  // namespace scalecom::state
