#include "train/data/wav.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "scalecom/core/error.h"
#include "tests/train/data/wav_file.h"
#include "tests/train/folder.h"

namespace train::data {
namespace {

using scalecom::core::UsageError;

/// What reading a file says that `change` has changed.
std::string error(const std::function<void(WavFile&)>& change) {
  const Folder folder;
  WavFile file;
  file.samples = {1, 2, 3};
  change(file);
  file.write(folder / "a.wav");
  return message_of<UsageError>([&] { read_wav(folder / "a.wav", 8000); });
}

/// The same for a file of which only the first bytes are there.
std::string error_of_first(std::size_t bytes) {
  return error([&](WavFile& file) { file.kept = bytes; });
}

TEST(WavTest, GivesTheSamples) {
  const Folder folder;
  WavFile file;
  file.samples = {0, 1, -1, 32767, -32768, 258};
  file.write(folder / "a.wav");
  EXPECT_EQ(read_wav(folder / "a.wav", 8000), file.samples);
}

TEST(WavTest, PassesOverOtherChunks) {
  const Folder folder;
  WavFile file;
  file.samples = {7, 8};
  file.before_data = std::string("LIST\x03\0\0\0abc\0", 12);  // of an odd size, and so padded
  file.write(folder / "a.wav");
  EXPECT_EQ(read_wav(folder / "a.wav", 8000), file.samples);
}

TEST(WavTest, RefusesEveryTruncation) {
  WavFile file;
  file.samples = {1, 2, 3};
  const std::size_t whole = file.content().size();
  for (std::size_t bytes = 0; bytes < whole; ++bytes) {
    const std::string message = error_of_first(bytes);
    EXPECT_NE(message.find("a.wav is truncated"), std::string::npos) << bytes << message;
  }
}

TEST(WavTest, RefusesOtherKinds) {
  EXPECT_NE(error([](WavFile& f) { f.magic = "RIFX"; }).find("not a WAV file"), std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.coding = 7; }).find("coding 7"), std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.channels = 2; }).find("2 channels"), std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.bits = 8; }).find("8 bits"), std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.rate = 44100; }).find("44100 samples a second; 8000"),
            std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.samples.clear(); }).find("no sound"), std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.data_size = 0xfffffff0; }).find("truncated"),
            std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.data_size = 5; }).find("within a sample"), std::string::npos);
  EXPECT_NE(error([](WavFile& f) { f.format_size = 4; }).find("damaged"), std::string::npos);
  EXPECT_NE(message_of<UsageError>([] { read_wav("/nowhere/a.wav", 8000); }).find("missing"),
            std::string::npos);
}

}  // namespace
}  // namespace train::data
