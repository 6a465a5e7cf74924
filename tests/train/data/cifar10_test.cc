#include "train/data/cifar10.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "scalecom/core/error.h"
#include "tests/train/folder.h"

namespace train::data {
namespace {

namespace fs = std::filesystem;
using scalecom::core::UsageError;

std::string record(int label, int byte) {
  return std::string(1, static_cast<char>(label)) + std::string(3072, static_cast<char>(byte));
}

void write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// Two records a file, labels and bytes numbered through.
void write_batches(const fs::path& folder) {
  fs::create_directories(folder);
  for (int i = 0; i < 5; ++i) {
    write(folder / ("data_batch_" + std::to_string(i + 1) + ".bin"),
          record(2 * i, 10 * i) + record(2 * i + 1, 10 * i + 5));
  }
  write(folder / "test_batch.bin", record(9, 255));
}

TEST(Cifar10Test, ReadsTheFolderOrTheOneAboveIt) {
  const Folder folder;
  write_batches(folder / "cifar-10-batches-bin");
  for (const char* place : {"", "cifar-10-batches-bin"}) {
    const Cifar10 data = read_cifar10(folder / place);
    EXPECT_EQ(data.training.size(), 10);
    EXPECT_EQ(data.test.size(), 1);
    EXPECT_EQ(data.training.labels[3], 3);
    EXPECT_EQ(data.training.bytes.size(), 10U * 3072);
    EXPECT_EQ(data.training.bytes[3 * 3072], 15);
    EXPECT_EQ(data.training.shape.elements(), 3072);
  }
}

TEST(Cifar10Test, OnlyTrainingVaries) {
  const Folder folder;
  write_batches(folder / "");
  const Cifar10 data = read_cifar10(folder / "");
  EXPECT_EQ(data.training.variation.shift, 4);
  EXPECT_TRUE(data.training.variation.mirrored);
  EXPECT_EQ(data.test.variation.shift, 0);
  EXPECT_FALSE(data.test.variation.mirrored);
  EXPECT_NEAR(data.test.scale[2 * 256 + 255], (1 - 0.4465) / 0.2616, 1e-5);
}

TEST(Cifar10Test, DamageIsRefusedByName) {
  const Folder folder;
  const auto refused = [&](const std::string& file, const std::string& word) {
    const std::string message =
        message_of<UsageError>([&] { static_cast<void>(read_cifar10(folder / "data")); });
    EXPECT_NE(message.find(file), std::string::npos) << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
    fs::remove_all(folder / "data");
    write_batches(folder / "data");
  };
  refused("data", "is missing");
  fs::remove(folder / "data/data_batch_4.bin");
  refused("data_batch_4.bin", "is missing");
  fs::resize_file(folder / "data/data_batch_2.bin", 2 * 3073 - 1);
  refused("data_batch_2.bin", "truncated");
  fs::resize_file(folder / "data/data_batch_3.bin", 3073);
  refused("data_batch_3.bin", "not whole");
  fs::resize_file(folder / "data/test_batch.bin", 0);
  refused("test_batch.bin", "is empty");
  write(folder / "data/test_batch.bin", "<html>not found</html>");
  refused("test_batch.bin", "no CIFAR-10 batch");
  write(folder / "data/test_batch.bin", record(10, 0));
  refused("test_batch.bin", "label 10");
}

}  // namespace
}  // namespace train::data
