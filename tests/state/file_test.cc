#include "scalecom/state/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
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
