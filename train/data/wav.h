#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace train::data {

/// Reads a WAV file of plain 16-bit samples, one channel, at `rate` a second. core::UsageError,
/// naming the file and what is wrong with it, where it is missing, truncated, of another kind, or
/// holds no sound.
std::vector<std::int16_t> read_wav(const std::filesystem::path& path, std::uint32_t rate);

}  // namespace train::data
