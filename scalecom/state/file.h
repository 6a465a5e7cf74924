#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace scalecom::state {

/// An open file. Failures of the system are core::IoError, naming the path and the reason.
class File {
 public:
  /// For reading; core::UsageError for what does not exist or is not a plain file.
  static File open(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  std::int64_t size() const;
  /// Fills `out` from `offset` on; core::UsageError where the file ends before that.
  void read(std::int64_t offset, std::span<std::byte> out) const;

 private:
  friend class NewFile;
  friend void append(const std::filesystem::path& path, std::span<const std::byte> bytes);
  File(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// A file that appears whole or not at all: written under a name of its own in the folder of
/// `target`, and renamed to it by commit(). Without commit() it is removed, and what stood at
/// `target` is as it was.
class NewFile {
 public:
  /// core::UsageError where a device or a pipe stands at `target`, or a link to one.
  explicit NewFile(std::filesystem::path target);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();

  void write(std::span<const std::byte> bytes);
  /// On the disk first, then in its place.
  void commit();

 private:
  std::filesystem::path target_;
  File temporary_;
  bool committed_ = false;
};

/// The files of a folder that are NewFiles before their commit(), or were when their process was
/// killed. None where the folder cannot be read.
std::vector<std::filesystem::path> temporary_files(const std::filesystem::path& folder);

/// Adds to the end of a file, which is made where it is missing; on the disk when it returns.
/// core::IoError where that cannot be, or where a link stands in its place.
void append(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace scalecom::state
