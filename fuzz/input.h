#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// What targets make of the bytes that they are given.
namespace fuzz {

/// Takes numbers from the front of the bytes, 0 once they are used up; the rest is the message.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  /// A number in [low, high].
  std::int64_t number(std::int64_t low, std::int64_t high);
  std::span<const std::byte> rest() const { return std::as_bytes(rest_); }

 private:
  std::span<const std::uint8_t> rest_;
};

/// A folder of this process, made when it is first asked for and removed at its end; in memory
/// where the system has such a place.
const std::filesystem::path& folder();

/// The bytes become this file.
void write(const std::filesystem::path& path, const std::uint8_t* data, std::size_t size);

/// Ends the process, loudly, where what must hold does not.
void require(bool holds, std::string_view what);

}  // namespace fuzz

/// Every target is this function: an input that is refused, by the exception that its reader
/// documents, is fine.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer names it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
