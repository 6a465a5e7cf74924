#include "fuzz/input.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace fuzz {
namespace {

struct Folder {
  Folder() {
    const auto parent = std::filesystem::is_directory("/dev/shm")
                            ? std::filesystem::path("/dev/shm")
                            : std::filesystem::temp_directory_path();
    std::string name = (parent / "scalecom-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "a temporary folder can be made");
    path = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

  std::filesystem::path path;
};

}  // namespace

std::int64_t Input::number(std::int64_t low, std::int64_t high) {
  const auto span = static_cast<std::uint64_t>(high - low);
  std::uint64_t value = 0;
  for (std::uint64_t range = span; range > 0 && !rest_.empty(); range >>= 8) {
    value = value << 8 | rest_.front();
    rest_ = rest_.subspan(1);
  }
  return low + static_cast<std::int64_t>(span == ~std::uint64_t{0} ? value : value % (span + 1));
}

const std::filesystem::path& folder() {
  static const Folder one;
  return one.path;
}

void write(const std::filesystem::path& path, const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             std::fclose);
  require(file != nullptr, "a temporary file can be written");
  require(std::fwrite(data, 1, size, file.get()) == size, "a temporary file can be written");
}

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace fuzz
