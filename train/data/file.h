#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace train::data {

/// core::UsageError: "[data] PATH WHAT".
[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what);

/// All of a file; refused where it is missing or cannot be read.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

}  // namespace train::data
