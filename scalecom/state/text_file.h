#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace scalecom::state {

/// Writes a text to a file that appears whole or not at all (NewFile); core::IoError where it
/// cannot be written, and then what stood at `path` is as it was.
void write_text(const std::filesystem::path& path, std::string_view text);

/// All of a file. core::UsageError where there is none, or no plain file; core::IoError where it
/// cannot be read.
std::string read_text(const std::filesystem::path& path);

}  // namespace scalecom::state
