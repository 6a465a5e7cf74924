#include "scalecom/state/safetensors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

// A file by hand: the length of the header, the header, the data.
std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>((header.size() >> (8 * i)) & 0xffU));
  }
  return bytes + header + data;
}

// The format as its page describes it, written out byte by byte.
TEST(Safetensors, WritesTheFormatToTheByte) {
  const TemporaryFolder folder;
  const std::vector<float> a{1.0F, -2.0F};
  const std::vector<float> b{0.5F};
  const std::vector<TensorView> tensors{{"b/x", {2, 1}, a}, {"a", {}, b}, {"none", {3, 0}, {}}};
  write_safetensors(folder / "f", tensors, {{"k", "v\n"}, {"format", "x"}});
  const std::string expected =
      std::string("\xd8\0\0\0\0\0\0\0", 8) +
      "{\"__metadata__\":{\"format\":\"x\",\"k\":\"v\\n\"},"
      "\"b/x\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]},"
      "\"none\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[12,12]}}     " +
      std::string("\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f", 12);
  EXPECT_EQ(contents(folder / "f"), expected);
}

TEST(Safetensors, RoundTrips) {
  const TemporaryFolder folder;
  const std::vector<std::string> names{"w", "größe \U0001F600", "a\"b\\c\n\t\x01", "", "x/y.z"};
  std::vector<std::vector<float>> data;
  std::vector<TensorView> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    data.emplace_back(i * 1000);
    for (std::size_t j = 0; j < data[i].size(); ++j) {
      data[i][j] = std::bit_cast<float>(static_cast<std::uint32_t>(j * 2654435761U + i));
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    tensors.push_back({names[i], {static_cast<std::int64_t>(i), 1000}, data[i]});
  }
  const Metadata metadata{{"a", ""}, {"ключ", "\"\\\u2028"}};
  write_safetensors(folder / "f", tensors, metadata);

  const SafetensorsReader reader(folder / "f");
  EXPECT_EQ(reader.metadata(), metadata);
  EXPECT_EQ(reader.tensors().size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& tensor = reader.tensor(names[i]);
    EXPECT_EQ(tensor.shape, tensors[i].shape);
    EXPECT_EQ(tensor.dtype, "F32");
    std::vector<float> read(data[i].size());
    reader.read(names[i], read);
    for (std::size_t j = 0; j < read.size(); ++j) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(read[j]), std::bit_cast<std::uint32_t>(data[i][j]));
    }
  }
}

TEST(Safetensors, AnEmptyFileOfNoTensors) {
  const TemporaryFolder folder;
  write_safetensors(folder / "f", {}, {});
  EXPECT_EQ(contents(folder / "f"), file_of("{}      ", ""));
  const SafetensorsReader reader(folder / "f");
  EXPECT_TRUE(reader.tensors().empty());
  EXPECT_TRUE(reader.metadata().empty());
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  const TemporaryFolder folder;
  put(folder / "f",
      file_of("{\"y\":{\"shape\":[2],\"data_offsets\":[4,8],\"dtype\":\"BF16\"},\n \"x\":"
              "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}, \"z\\u00e9\":"
              "{\"dtype\":\"I64\",\"shape\":[0,4],\"data_offsets\":[4,4]}}",
              std::string("\0\0\x80\x3f\0\0\0\0", 8)));
  const SafetensorsReader reader(folder / "f");
  float x = 0;
  reader.read("x", {&x, 1});
  EXPECT_EQ(x, 1.0F);
  EXPECT_EQ(reader.tensor("zé").dtype, "I64");
  std::vector<float> y(2);
  EXPECT_TRUE(has(refusal<core::UsageError>([&] { reader.read("y", y); }), "'y' as BF16"));
}

TEST(Safetensors, ReadsParts) {
  const TemporaryFolder folder;
  const std::vector<float> data{0, 1, 2, 3, 4, 5, 6};
  write_safetensors(folder / "f",
                    std::vector<TensorView>{{"a", {1}, {data.data(), 1}}, {"b", {7}, data}}, {});
  const SafetensorsReader reader(folder / "f");
  std::vector<float> part(3);
  reader.read(reader.tensor("b"), 4, part);
  EXPECT_EQ(part, (std::vector<float>{4, 5, 6}));
  reader.read(reader.tensor("b"), 7, {});
  for (const std::int64_t first : {std::int64_t{5}, std::int64_t{8}, std::int64_t{-1},
                                   std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_THROW(reader.read(reader.tensor("b"), first, part), core::UsageError) << first;
  }
  // Nor does a part reach into the tensor after it.
  EXPECT_THROW(reader.read(reader.tensor("a"), 0, part), core::UsageError);
  EXPECT_THROW(reader.read("b", part), core::UsageError);
  EXPECT_TRUE(has(refusal<core::UsageError>([&] { reader.tensor("c"); }), "has no tensor 'c'"));
}

TEST(Safetensors, RefusesToWriteWhatIsNoFile) {
  const TemporaryFolder folder;
  put(folder / "f", "old");
  const std::vector<float> data(6);
  const std::int64_t large = std::int64_t{1} << 40;
  const auto message = [&](std::vector<TensorView> tensors, const Metadata& metadata = {}) {
    return refusal<core::UsageError>([&] { write_safetensors(folder / "f", tensors, metadata); });
  };
  EXPECT_TRUE(has(message({{"a", {7}, data}}), "'a' has a shape that does not fit"));
  EXPECT_TRUE(has(message({{"a", {-2, -3}, data}}), "negative"));
  EXPECT_TRUE(has(message({{"a", {large, large}, data}}), "beyond 64 bits"));
  EXPECT_TRUE(has(message({{"a", {6}, data}, {"a", {6}, data}}), "'a' stands twice"));
  EXPECT_TRUE(has(message({{"__metadata__", {6}, data}}), "keeps for itself"));
  EXPECT_TRUE(has(message({{"\xff", {6}, data}}), "not UTF-8"));
  EXPECT_TRUE(has(message({}, {{"k", "\xc3"}}), "not UTF-8"));
  EXPECT_EQ(contents(folder / "f"), "old");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

// A file whose length bytes are those of something else, large enough to hold what they say.
TEST(Safetensors, RefusesAHeaderThatIsTooLong) {
  const TemporaryFolder folder;
  const std::uint64_t length = 100'000'001;
  put(folder / "f", {reinterpret_cast<const char*>(&length), sizeof length});
  std::filesystem::resize_file(folder / "f", sizeof length + length);  // no block of it is written
  const std::string message = refusal<core::UsageError>([&] { SafetensorsReader(folder / "f"); });
  EXPECT_TRUE(has(message, "100000000 is the most allowed")) << message;
}

TEST(Safetensors, RefusesBrokenHeaders) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& header, std::size_t data_bytes) {
    put(folder / "f", file_of(header, std::string(data_bytes, '\0')));
    const std::string text = refusal<core::UsageError>([&] { SafetensorsReader(folder / "f"); });
    EXPECT_TRUE(text.empty() || has(text, (folder / "f").string())) << text;
    return text;
  };
  const auto tensor = [](const std::string& name, const std::string& type, const std::string& shape,
                         const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}";
  };
  const std::string good = tensor("a", "F32", "[2]", "[0,8]");
  EXPECT_EQ(message("{" + good + "}", 8), "");
  EXPECT_TRUE(has(message("{" + good + "}", 7), "truncated"));
  EXPECT_TRUE(has(message("{" + good + "}", 9), "1 bytes follow the last"));
  EXPECT_TRUE(has(message("{" + good + "," + good + "}", 8), "'a' stands twice"));
  EXPECT_TRUE(
      has(message("{" + good + "," + tensor("b", "U8", "[4]", "[4,8]") + "}", 8), "overlap"));
  EXPECT_TRUE(has(message("{" + good + "," + tensor("b", "U8", "[4]", "[9,13]") + "}", 13), "gap"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", "[2]", "[1,9]") + "}", 9), "gap"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", "[3]", "[0,8]") + "}", 8), "do not fit"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", "[2]", "[8,0]") + "}", 8), "do not fit"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F33", "[2]", "[0,8]") + "}", 8), "unknown dtype"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8), "whole number"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", "[2]", "[0]") + "}", 8), "two numbers"));
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", "[2]", "[0,8,8]") + "}", 8), "over 2 numbers"));
  const std::string huge = "[4294967296,4294967296,4]";
  EXPECT_TRUE(has(message("{" + tensor("a", "F32", huge, "[0,0]") + "}", 0), "beyond 64 bits"));
  const std::string most = "[4611686018427387904]";
  EXPECT_TRUE(has(message("{" + tensor("a", "F64", most, "[0,0]") + "}", 0), "beyond 64 bits"));
  const std::string far = "[0,9223372036854775804]";
  EXPECT_TRUE(
      has(message("{" + tensor("a", "F32", "[2305843009213693951]", far) + "}", 8), "truncated"));
  EXPECT_TRUE(has(message("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8), "lacks"));
  EXPECT_TRUE(has(message("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 8), "twice"));
  EXPECT_TRUE(has(message("{\"a\":{\"extra\":[1]}}", 8), "'extra' is unknown"));
  EXPECT_TRUE(has(message("{\"__metadata__\":{\"k\":1}}", 0), "a string was expected"));
  EXPECT_TRUE(has(message("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0), "'k' stands twice"));
  EXPECT_TRUE(has(message("{\"__metadata__\":{},\"__metadata__\":{}}", 0), "twice"));
  EXPECT_TRUE(has(message("[]", 0), "'{' was expected"));
  EXPECT_TRUE(has(message("{} x", 0), "something follows"));
  EXPECT_TRUE(has(message("", 0), "'{' was expected"));
}

}  // namespace
}  // namespace scalecom::state
