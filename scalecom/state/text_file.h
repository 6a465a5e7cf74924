#pragma once

#include <filesystem>
#include <string_view>

namespace scalecom::state {

/// Writes a text to a file that appears whole or not at all (NewFile); core::IoError where it
/// cannot be written, and then what stood at `path` is as it was.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace scalecom::state
