#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/state/safetensors.h"
#include "tests/state/temporary_folder.h"

namespace {

// The largest piece of memory asked for since it was last reset.
std::atomic<std::size_t> largest_request = 0;

}  // namespace

// Not inlined: GCC 12 would see one half of a pair without the other, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  std::size_t seen = largest_request;
  while (seen < size && !largest_request.compare_exchange_weak(seen, size)) {
  }
  if (void* data = std::malloc(size == 0 ? 1 : size)) return data;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* data) noexcept {
  std::free(data);
}
[[gnu::noinline]] void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}

namespace scalecom::state {
namespace {

class Damage : public testing::Test {
 protected:
  Damage() {
    const std::vector<float> data{1, 2, 3, 4, 5, 6};
    const std::vector<TensorView> tensors{{"a", {2, 2}, {data.data(), 4}},
                                          {"bé\n", {2}, {data.data() + 4, 2}}};
    write_safetensors(path, tensors, {{"key", "value"}});
    bytes = contents(path);
  }

  // Opens and reads everything; false where it was refused. Anything but a UsageError fails.
  bool opens(const std::string& changed) {
    put(path, changed);
    largest_request = 0;
    bool opened = true;
    try {
      const SafetensorsReader reader(path);
      for (const auto& tensor : reader.tensors()) {
        std::vector<float> out(static_cast<std::size_t>(tensor.elements));
        if (tensor.dtype == "F32") reader.read(tensor.name, out);
      }
    } catch (const core::UsageError& error) {
      EXPECT_TRUE(has(error.what(), path.string())) << error.what();
      opened = false;
    }
    EXPECT_LT(largest_request, 100000U);
    return opened;
  }

  TemporaryFolder folder;
  std::filesystem::path path = folder / "f";
  std::string bytes;
};

TEST_F(Damage, TruncatedAnywhereIsRefused) {
  EXPECT_TRUE(opens(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(opens(bytes.substr(0, length))) << length;
  }
}

TEST_F(Damage, AnyByteChangedToAnythingIsRefusedOrStillAFile) {
  const std::size_t data_begin = bytes.size() - 24;
  for (std::size_t at = 0; at < data_begin; ++at) {
    for (int value = 0; value < 256; value += at < 8 ? 1 : 3) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      const bool opened = opens(changed);
      // A length that differs leaves a header that is no JSON.
      if (at < 8 && changed != bytes) {
        EXPECT_FALSE(opened) << at << " " << value;
      }
    }
  }
}

TEST_F(Damage, InsertedAndRemovedBytesAreRefused) {
  for (std::size_t at = 8; at < bytes.size(); ++at) {
    std::string longer = bytes;
    longer.insert(at, 1, '0');
    EXPECT_FALSE(opens(longer)) << at;
    std::string shorter = bytes;
    shorter.erase(at, 1);
    EXPECT_FALSE(opens(shorter)) << at;
  }
}

TEST_F(Damage, LengthsThatDoNotFitTakeNoMemory) {
  for (const std::uint64_t length :
       {std::uint64_t{99'999'999}, std::uint64_t{100'000'000}, std::uint64_t{100'000'001},
        std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    std::string changed = bytes;
    for (std::size_t i = 0; i < 8; ++i) changed[i] = static_cast<char>((length >> (8 * i)) & 0xffU);
    EXPECT_FALSE(opens(changed)) << length;
  }
}

// Depth, many numbers and many entries are what a header can try to use up memory with.
TEST_F(Damage, HostileHeadersAreRefused) {
  const auto refused = [&](const std::string& header) {
    std::string changed(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) {
      changed[i] = static_cast<char>((header.size() >> (8 * i)) & 0xffU);
    }
    put(path, changed + header);
    return refusal<core::UsageError>([&] { SafetensorsReader reader(path); });
  };
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_TRUE(has(refused("{\"a\":{\"shape\":" + deep + "}}"), "whole number"));
  EXPECT_TRUE(has(refused(deep), "'{' was expected"));
  std::string members;
  for (int i = 0; i < 100000; ++i) members += "{\"a\":";
  EXPECT_FALSE(refused(members).empty());
  std::string ones = "1";
  for (int i = 0; i < 500000; ++i) ones += ",1";
  EXPECT_TRUE(has(refused("{\"a\":{\"shape\":[" + ones + "]}}"), "over 32 numbers"));
  std::string tensors;
  for (int i = 0; i < 300000; ++i) {
    tensors += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
               "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  }
  EXPECT_TRUE(has(refused("{" + tensors + "}"), "over 262144 tensors"));
}

}  // namespace
}  // namespace scalecom::state
