#include "train/data/wav.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "scalecom/core/text.h"
#include "train/data/file.h"

namespace train::data {
namespace {

namespace core = scalecom::core;
using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kHeader = 12;       // "RIFF", the size of the rest, "WAVE"
constexpr std::size_t kChunkHeader = 8;   // a name and the size of what follows
constexpr std::size_t kFormatBytes = 16;  // of the fields of "fmt " that everybody has
constexpr std::uint16_t kPlain = 1;
constexpr std::uint16_t kBits = 16;

bool is_named(Bytes at, std::string_view name) {
  return std::memcmp(at.data(), name.data(), name.size()) == 0;
}

/// A little-endian number.
template <typename T>
T number(Bytes at, std::size_t offset) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>(value << 8 | at[offset + i]);
  return value;
}

void check_format(const std::filesystem::path& path, Bytes format, std::uint32_t rate) {
  if (format.size() < kFormatBytes) refuse(path, "is damaged: its 'fmt ' chunk is too short");
  const auto kind = number<std::uint16_t>(format, 0);
  const auto channels = number<std::uint16_t>(format, 2);
  const auto own_rate = number<std::uint32_t>(format, 4);
  const auto bits = number<std::uint16_t>(format, 14);
  if (kind != kPlain) {
    refuse(path, core::concat("holds samples of the coding ", kind, "; plain PCM (1) is expected"));
  }
  if (channels != 1) refuse(path, core::concat("has ", channels, " channels; one is expected"));
  if (bits != kBits) refuse(path, core::concat("has samples of ", bits, " bits; 16 are expected"));
  if (own_rate != rate) {
    refuse(path, core::concat("has ", own_rate, " samples a second; ", rate, " are expected"));
  }
}

std::vector<std::int16_t> to_samples(Bytes data) {
  std::vector<std::int16_t> samples(data.size() / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = static_cast<std::int16_t>(number<std::uint16_t>(data, 2 * i));
  }
  return samples;
}

}  // namespace

std::vector<std::int16_t> read_wav(const std::filesystem::path& path, std::uint32_t rate) {
  const std::vector<std::uint8_t> content = read_file(path);
  Bytes rest(content);
  if (rest.size() < kHeader) refuse(path, "is truncated or no WAV file: it has no whole header");
  if (!is_named(rest, "RIFF") || !is_named(rest.subspan(8), "WAVE")) {
    refuse(path, "is not a WAV file");
  }
  rest = rest.subspan(kHeader);
  bool knows_format = false;
  while (rest.size() >= kChunkHeader) {
    const Bytes name = rest.first(4);
    const std::size_t size = number<std::uint32_t>(rest, 4);
    rest = rest.subspan(kChunkHeader);
    if (size > rest.size()) {
      refuse(path, core::concat("is truncated: a chunk of ", size, " bytes has ", rest.size()));
    }
    const Bytes chunk = rest.first(size);
    if (is_named(name, "fmt ")) {
      check_format(path, chunk, rate);
      knows_format = true;
    } else if (is_named(name, "data")) {
      if (!knows_format) refuse(path, "is damaged: its samples come before their format");
      if (size == 0) refuse(path, "holds no sound");
      if (size % 2 != 0) refuse(path, "is damaged: it ends within a sample");
      return to_samples(chunk);
    }
    // Chunks begin at even places.
    rest = rest.subspan(std::min(rest.size(), size + size % 2));
  }
  refuse(path, "is truncated: it has no samples");
}

}  // namespace train::data
