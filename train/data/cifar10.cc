#include "train/data/cifar10.h"

#include <span>
#include <string>

#include "scalecom/core/text.h"
#include "train/data/file.h"

namespace train::data {
namespace {

namespace core = scalecom::core;
namespace fs = std::filesystem;

constexpr const char* kFolder = "cifar-10-batches-bin";
constexpr Shape kShape{3, 32, 32};
constexpr int kClasses = 10;
constexpr int kTrainingFiles = 5;
constexpr auto kPicture = static_cast<std::size_t>(3 * 32 * 32);
constexpr std::size_t kRecord = 1 + kPicture;

/// Adds a file's records; returns how many there are.
std::size_t append(const fs::path& path, Samples& samples) {
  const std::vector<std::uint8_t> content = read_file(path);
  const std::size_t records = content.size() / kRecord;
  if (content.empty()) refuse(path, "is empty");
  if (content.size() % kRecord != 0) {
    refuse(path, core::concat("is truncated or no CIFAR-10 batch: its ", content.size(),
                              " bytes are no whole number of records of ", kRecord, " bytes"));
  }
  for (std::size_t i = 0; i < records; ++i) {
    const auto record = std::span(content).subspan(i * kRecord, kRecord);
    if (record[0] >= kClasses) {
      refuse(path, core::concat("is damaged or no CIFAR-10 batch: record ", i, " has the label ",
                                int{record[0]}, "; labels are 0 to 9"));
    }
    samples.labels.push_back(record[0]);
    samples.bytes.insert(samples.bytes.end(), record.begin() + 1, record.end());
  }
  return records;
}

Samples empty_samples() {
  Samples samples;
  samples.shape = kShape;
  // Mean and deviation of the training set's red, green and blue.
  append_scale(0.4914F, 0.2470F, samples.scale);
  append_scale(0.4822F, 0.2435F, samples.scale);
  append_scale(0.4465F, 0.2616F, samples.scale);
  return samples;
}

}  // namespace

Cifar10 read_cifar10(const fs::path& folder) {
  const fs::path below = folder / kFolder;
  const fs::path place = fs::is_directory(below) ? below : folder;
  if (!fs::is_directory(place)) refuse(place, "is missing or not a folder");
  Cifar10 data{empty_samples(), empty_samples()};
  data.training.variation = {4, true};
  std::size_t first = 0;
  for (int i = 1; i <= kTrainingFiles; ++i) {
    const fs::path path = place / core::concat("data_batch_", i, ".bin");
    const std::size_t records = append(path, data.training);
    if (i == 1) first = records;
    if (records != first) {
      refuse(path, core::concat("has ", records, " pictures and data_batch_1.bin ", first,
                                ": one of them is not whole"));
    }
  }
  append(place / "test_batch.bin", data.test);
  return data;
}

}  // namespace train::data
