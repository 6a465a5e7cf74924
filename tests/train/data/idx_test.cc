#include "train/data/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <string>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"

namespace train::data {
namespace {

using scalecom::core::UsageError;
using Bytes = std::string;

Bytes header(std::uint8_t type, const std::vector<std::uint32_t>& shape) {
  Bytes bytes{0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift);
  }
  return bytes;
}

Bytes array(const std::vector<std::uint32_t>& shape) {
  std::size_t elements = 1;
  for (const std::uint32_t extent : shape) elements *= extent;
  Bytes bytes = header(8, shape);
  for (std::size_t i = 0; i < elements; ++i) bytes += static_cast<char>(i % 251);
  return bytes;
}

Bytes gzipped(const Bytes& bytes, const std::filesystem::path& scratch) {
  gzFile file = gzopen(scratch.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::ifstream in(scratch, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class IdxTest : public testing::Test {
 protected:
  std::filesystem::path write(const Bytes& bytes) {
    std::ofstream(file_, std::ios::binary) << bytes;
    return file_;
  }
  std::string error(const Bytes& bytes, int dimensions) {
    return message_of<UsageError>([&] { read_idx(write(bytes), dimensions); });
  }

  Folder folder_;
  std::filesystem::path file_ = folder_ / "file";
};

TEST_F(IdxTest, ReadsPlainAndGzippedFiles) {
  const Bytes bytes = array({7, 3, 5});
  for (const Bytes& form : {bytes, gzipped(bytes, folder_ / "scratch")}) {
    const ByteArray read = read_idx(write(form), 3);
    EXPECT_EQ(read.shape, (std::vector<std::int64_t>{7, 3, 5}));
    ASSERT_EQ(read.data.size(), 105U);
    EXPECT_EQ(read.data[104], 104);
  }
}

TEST_F(IdxTest, ReadsArraysLongerThanAPiece) {
  const ByteArray read = read_idx(write(gzipped(array({3'000'001}), folder_ / "scratch")), 1);
  ASSERT_EQ(read.data.size(), 3'000'001U);
  EXPECT_EQ(read.data.back(), 3'000'000 % 251);
}

TEST_F(IdxTest, RefusesWhatIsMissing) {
  EXPECT_NE(message_of<UsageError>([&] { read_idx(folder_ / "none", 1); }).find("none is missing"),
            std::string::npos);
  EXPECT_THROW(read_idx(folder_ / ".", 1), UsageError);
}

TEST_F(IdxTest, RefusesEveryTruncation) {
  const Bytes bytes = array({4, 2});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(error(bytes.substr(0, size), 2).find("truncated"), std::string::npos) << size;
  }
  const Bytes packed = gzipped(array({40, 20}), folder_ / "scratch");
  for (std::size_t size = 3; size < packed.size(); ++size) {
    EXPECT_THROW(read_idx(write(packed.substr(0, size)), 2), UsageError) << size;
  }
}

TEST_F(IdxTest, RefusesDamagedGzipData) {
  Bytes packed = gzipped(array({4000}), folder_ / "scratch");
  for (std::size_t at = 10; at < packed.size(); at += 7) {
    Bytes damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    EXPECT_THROW(read_idx(write(damaged), 1), UsageError) << at;
  }
}

TEST_F(IdxTest, RefusesForeignFiles) {
  EXPECT_NE(error("something else altogether", 1).find("not an IDX file"), std::string::npos);
  EXPECT_NE(error(header(0x0d, {1}) + "1234", 1).find("not an IDX file"), std::string::npos);
  EXPECT_NE(error(array({2, 2}), 3).find("has 2 dimensions; 3 are expected"), std::string::npos);
  EXPECT_NE(error(array({2, 2}) + "x", 2).find("after its last element"), std::string::npos);
  EXPECT_NE(error(header(8, {0}), 1).find("empty"), std::string::npos);
}

// Memory is taken as data comes: these would need 2^64 and 2^39 bytes.
TEST_F(IdxTest, HeadersCannotAskForMoreThanTheFileHolds) {
  EXPECT_NE(error(header(8, {0xffffffff, 0xffffffff}) + "12", 2).find("too large"),
            std::string::npos);
  EXPECT_NE(error(header(8, {0x7fffffff, 0x100}) + "12", 2).find("truncated: it holds 2 of"),
            std::string::npos);
}

}  // namespace
}  // namespace train::data
