#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace train::data {

/// One spoken digit.
struct Recording {
  int digit = 0;
  int speaker = 0;
  std::vector<std::int16_t> samples;
};

struct Fsdd {
  static constexpr std::uint32_t kRate = 8000;

  std::vector<Recording> training;
  std::vector<Recording> test;
};

/// Reads the Free Spoken Digit Dataset: files DIGIT_SPEAKER_TAKE.wav, of which takes 0 to 4 are for
/// testing, as its authors have it. `folder` holds them, or the folder recordings or
/// fsdd/recordings that does. core::UsageError, naming the file and what is wrong with it, where
/// one is of another name or kind, or where there is nothing to train or to test with.
///
/// With `held_out` takes, so many from 5 on stand for those of the test and are not trained with.
Fsdd read_fsdd(const std::filesystem::path& folder, std::int64_t held_out = 0);

}  // namespace train::data
