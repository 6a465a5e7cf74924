#include "train/data/fsdd.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scalecom/core/error.h"
#include "tests/train/data/wav_file.h"
#include "tests/train/folder.h"

namespace train::data {
namespace {

namespace fs = std::filesystem;
using scalecom::core::UsageError;

void record(const fs::path& folder, const std::string& name, std::int16_t sample = 1) {
  fs::create_directories(folder);
  WavFile file;
  file.samples = {sample, 2};
  file.write(folder / name);
}

std::string error(const fs::path& folder) {
  return message_of<UsageError>([&] { read_fsdd(folder); });
}

TEST(FsddTest, KeepsTakesUnderFiveForTesting) {
  const Folder folder;
  record(folder / "recordings", "7_ann_4.wav", 74);
  record(folder / "recordings", "7_ann_5.wav", 75);
  record(folder / "recordings", "3_bob_12.wav", 312);
  record(folder / "recordings", "0_ann_6.wav", 6);
  std::ofstream(folder / "recordings" / "notes.txt") << "not a recording";
  const Fsdd data = read_fsdd(folder / "");
  ASSERT_EQ(data.test.size(), 1U);
  EXPECT_EQ(data.test[0].digit, 7);
  EXPECT_EQ(data.test[0].samples[0], 74);
  ASSERT_EQ(data.training.size(), 3U);
  // By speaker, digit and take.
  EXPECT_EQ(data.training[0].samples[0], 6);
  EXPECT_EQ(data.training[1].samples[0], 75);
  EXPECT_EQ(data.training[2].samples[0], 312);
  EXPECT_EQ(data.training[0].speaker, data.test[0].speaker);
  EXPECT_NE(data.training[2].speaker, data.test[0].speaker);
}

TEST(FsddTest, HoldsTakesOutInPlaceOfTheTest) {
  const Folder folder;
  for (int take = 0; take < 10; ++take) {
    record(folder / "", "1_a_" + std::to_string(take) + ".wav", static_cast<std::int16_t>(take));
  }
  const Fsdd data = read_fsdd(folder / "", 2);
  ASSERT_EQ(data.test.size(), 2U);
  EXPECT_EQ(data.test[0].samples[0], 5);
  ASSERT_EQ(data.training.size(), 3U);
  EXPECT_EQ(data.training[0].samples[0], 7);
  const std::string none = message_of<UsageError>([&] { read_fsdd(folder / "", 5); });
  EXPECT_NE(none.find("no recordings to train with: takes from 10 on"), std::string::npos) << none;
}

TEST(FsddTest, FindsTheFolder) {
  const Folder folder;
  record(folder / "fsdd" / "recordings", "1_a_0.wav");
  record(folder / "fsdd" / "recordings", "1_a_9.wav");
  EXPECT_EQ(read_fsdd(folder / "").training.size(), 1U);
  EXPECT_EQ(read_fsdd(folder / "fsdd").training.size(), 1U);
  EXPECT_EQ(read_fsdd(folder / "fsdd" / "recordings").training.size(), 1U);
}

TEST(FsddTest, RefusesWhatIsNotTheDataSet) {
  const Folder folder;
  EXPECT_NE(error(folder / "nowhere").find("missing"), std::string::npos);
  EXPECT_NE(error(folder / "").find("no recordings to train with"), std::string::npos);
  record(folder / "", "1_a_5.wav");
  EXPECT_NE(error(folder / "").find("no recordings to test with"), std::string::npos);
  for (const char* name : {"10_a_5.wav", "x_a_5.wav", "1_a.wav", "1__5.wav", "1_a_-5.wav"}) {
    const fs::path own = folder / (std::string("with ") + name);
    record(own, name);
    EXPECT_NE(error(own).find("DIGIT_SPEAKER_TAKE"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace train::data
