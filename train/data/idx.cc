#include "train/data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>

#include "scalecom/core/text.h"
#include "train/data/file.h"

namespace train::data {
namespace {

namespace core = scalecom::core;

constexpr std::uint8_t kUnsignedByte = 0x08;
// Far beyond any data set of bytes that fits a machine, and far from overflow.
constexpr std::int64_t kLargestArray = std::int64_t{1} << 40;
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// zlib's reader, which passes a file that is not gzipped through as it is.
class Input {
 public:
  explicit Input(const std::filesystem::path& path) : path_(path) {
    if (!std::filesystem::is_regular_file(path)) refuse(path, "is missing or not a plain file");
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) refuse(path, "cannot be read: is it yours to read?");
  }

  /// As many bytes as there are, up to the size of `out`.
  std::size_t read(std::span<std::uint8_t> out) {
    std::size_t done = 0;
    while (done < out.size()) {
      const auto wanted = static_cast<unsigned>(std::min(out.size() - done, kPiece));
      const int got = gzread(file_.get(), out.data() + done, wanted);
      if (got < 0) refuse(path_, "is damaged: its gzip data cannot be unpacked");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    // zlib reports a gzip stream that is cut short only here.
    int code = Z_OK;
    gzerror(file_.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) refuse(path_, "is truncated");
    return done;
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };

  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

std::vector<std::int64_t> read_shape(Input& input, const std::filesystem::path& path,
                                     int dimensions) {
  std::array<std::uint8_t, 4> word{};
  if (input.read(word) != word.size()) refuse(path, "is truncated: it has no whole header");
  if (word[0] != 0 || word[1] != 0 || word[2] != kUnsignedByte) {
    refuse(path, "is not an IDX file of unsigned bytes");
  }
  if (word[3] != dimensions) {
    refuse(path, core::concat("has ", int{word[3]}, " dimensions; ", dimensions, " are expected"));
  }
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  for (int d = 0; d < dimensions; ++d) {
    if (input.read(word) != word.size()) refuse(path, "is truncated: it has no whole header");
    std::int64_t extent = 0;
    for (const std::uint8_t byte : word) extent = extent << 8 | byte;
    if (extent == 0) refuse(path, "is empty: a dimension is 0");
    if (extent > kLargestArray / elements) refuse(path, "is damaged: its dimensions are too large");
    elements *= extent;
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

ByteArray read_idx(const std::filesystem::path& path, int dimensions) {
  Input input(path);
  ByteArray array{read_shape(input, path, dimensions), {}};
  std::size_t expected = 1;
  for (const std::int64_t extent : array.shape) expected *= static_cast<std::size_t>(extent);

  while (array.data.size() < expected) {
    const std::size_t begin = array.data.size();
    array.data.resize(begin + std::min(kPiece, expected - begin));
    const std::size_t got = input.read(std::span(array.data).subspan(begin));
    if (begin + got == array.data.size()) continue;
    refuse(path, core::concat("is truncated: it holds ", begin + got, " of ", expected, " bytes"));
  }
  std::array<std::uint8_t, 1> beyond{};
  if (input.read(beyond) != 0) refuse(path, "is damaged: it goes on after its last element");
  return array;
}

}  // namespace train::data
