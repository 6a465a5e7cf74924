#include "train/data/fsdd.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "scalecom/core/text.h"
#include "train/data/file.h"
#include "train/data/wav.h"

namespace train::data {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;

constexpr int kTestTakes = 5;

/// In this order the data set is read, whatever the order of the folder.
struct Name {
  std::string speaker;
  int digit = 0;
  int take = 0;
  bool operator<(const Name& other) const {
    return std::tie(speaker, digit, take) < std::tie(other.speaker, other.digit, other.take);
  }
};

std::optional<int> whole_number(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0) return std::nullopt;
  return value;
}

Name parse(const fs::path& path) {
  const std::vector<std::string> parts = core::split(path.stem().string(), '_');
  if (parts.size() == 3 && !parts[1].empty()) {
    const auto digit = whole_number(parts[0]);
    const auto take = whole_number(parts[2]);
    if (digit && *digit <= 9 && take) return {parts[1], *digit, *take};
  }
  refuse(path, "is not named DIGIT_SPEAKER_TAKE.wav, such as 7_jackson_32.wav");
}

fs::path find(const fs::path& folder) {
  for (const fs::path& below : {folder / "fsdd" / "recordings", folder / "recordings"}) {
    if (fs::is_directory(below)) return below;
  }
  if (!fs::is_directory(folder)) refuse(folder, "is missing or not a folder");
  return folder;
}

}  // namespace

Fsdd read_fsdd(const fs::path& folder, std::int64_t held_out) {
  const std::int64_t first_test = held_out > 0 ? kTestTakes : 0;
  const std::int64_t first_training = kTestTakes + held_out;
  const fs::path place = find(folder);
  std::map<Name, fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(place)) {
    if (entry.path().extension() == ".wav") files.emplace(parse(entry.path()), entry.path());
  }
  Fsdd data;
  std::map<std::string, int> speakers;
  for (const auto& [name, path] : files) {
    const int speaker =
        speakers.emplace(name.speaker, static_cast<int>(speakers.size())).first->second;
    if (name.take < first_test) continue;
    auto& part = name.take < first_training ? data.test : data.training;
    part.push_back({name.digit, speaker, read_wav(path, Fsdd::kRate)});
  }
  if (data.training.empty()) {
    refuse(place,
           core::concat("has no recordings to train with: takes from ", first_training, " on"));
  }
  if (data.test.empty()) {
    refuse(place, core::concat("has no recordings to test with: takes ", first_test, " to ",
                               first_training - 1));
  }
  return data;
}

}  // namespace train::data
