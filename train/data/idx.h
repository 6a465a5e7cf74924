#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace train::data {

/// An array of bytes, the last dimension the fastest.
struct ByteArray {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> data;
};

/// Reads an IDX file of unsigned bytes, plain or gzipped. core::UsageError, naming the file and
/// what is wrong with it, where it is missing, truncated, damaged, longer than it says, of another
/// type or of another number of dimensions. Memory is taken as data is read, so that no header can
/// ask for more than the file holds.
ByteArray read_idx(const std::filesystem::path& path, int dimensions);

}  // namespace train::data
