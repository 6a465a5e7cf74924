#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace train::data {

/// A WAV file of plain 16-bit samples, whatever its header says.
struct WavFile {
  std::vector<std::int16_t> samples;
  std::string magic = "RIFF";
  std::uint16_t coding = 1;
  std::uint16_t channels = 1;
  std::uint32_t rate = 8000;
  std::uint16_t bits = 16;
  std::uint32_t format_size = 16;
  std::optional<std::uint32_t> data_size;
  std::string before_data;
  std::optional<std::size_t> kept;  ///< bytes that are written

  std::string content() const {
    const auto bytes = static_cast<std::uint32_t>(2 * samples.size());
    std::string text = magic;
    put(text, 36 + bytes, 4);
    text += "WAVEfmt ";
    put(text, format_size, 4);
    put(text, coding, 2);
    put(text, channels, 2);
    put(text, rate, 4);
    put(text, rate * 2, 4);
    put(text, 2, 2);
    put(text, bits, 2);
    text += before_data + "data";
    put(text, data_size.value_or(bytes), 4);
    for (const std::int16_t sample : samples) put(text, static_cast<std::uint16_t>(sample), 2);
    return text;
  }

  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << content().substr(0, kept.value_or(std::string::npos));
  }

 private:
  static void put(std::string& text, std::uint32_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
  }
};

}  // namespace train::data
