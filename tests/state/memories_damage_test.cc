#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/state/memories.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

// A whole set of one file, all of whose bytes are reached.
class Damage : public testing::Test {
 protected:
  Damage() {
    save(folder.path(), 0, 1,
         {"scalecom,rate=4", 12, {{"w.0", data}, {"w.1", {data.data(), 1}}}, "t"});
    bytes = contents(path);
  }

  // False where it was refused, naming the file. What loads has to be what was saved.
  bool loads(const std::string& changed) {
    put(path, changed);
    try {
      const Loaded loaded = load(folder.path(), 0, 1);
      EXPECT_EQ(loaded.method, "scalecom,rate=4");
      EXPECT_EQ(loaded.step, 12);
      EXPECT_EQ(loaded.memories.size(), 2U);
      const auto& w = loaded.memories.at("w.0");
      EXPECT_EQ(std::vector<float>(w.begin(), w.end()), data);
      EXPECT_EQ(loaded.memories.at("w.1")[0], data[0]);
      EXPECT_EQ(describe(folder.path()).tag, "t");
      return true;
    } catch (const core::UsageError& error) {
      EXPECT_TRUE(has(error.what(), path.string())) << error.what();
      return false;
    }
  }

  const std::vector<float> data{1.5F, -2, 3e-20F};
  TemporaryFolder folder;
  std::filesystem::path path = folder / "rank-00000-of-00001.safetensors";
  std::string bytes;
};

TEST_F(Damage, TruncatedAnywhereIsRefused) {
  EXPECT_TRUE(loads(bytes));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(loads(bytes.substr(0, length))) << length;
  }
}

TEST_F(Damage, AnyBitFlippedIsRefusedOrChangesNothing) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_FALSE(loads(changed)) << at << " " << bit;
    }
  }
}

TEST_F(Damage, AnyByteReplacedIsRefusedOrChangesNothing) {
  int loaded = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : std::string("\0\t\n \"\\{}[],:019afz\x7f\xff", 21)) {
      std::string changed = bytes;
      changed[at] = value;
      if (changed != bytes && loads(changed)) ++loaded;
    }
  }
  // White space in the padding, and nothing else, may be replaced by other white space.
  EXPECT_LE(loaded, 2 * 7);
}

TEST_F(Damage, AppendedBytesAreRefused) {
  EXPECT_FALSE(loads(bytes + '\0'));
  EXPECT_FALSE(loads(bytes + bytes));
}

}  // namespace
}  // namespace scalecom::state
