#pragma once

#include <filesystem>

#include "train/data/samples.h"

namespace train::data {

struct Cifar10 {
  Samples training;
  Samples test;
};

/// Reads data_batch_1.bin to data_batch_5.bin and test_batch.bin, the binary version of CIFAR-10:
/// records of a label and 3 x 32 x 32 bytes. `folder` holds them, or the folder
/// cifar-10-batches-bin that does. core::UsageError, naming the file and what is wrong with it,
/// where one is missing, ends within a record, or is of another kind.
Cifar10 read_cifar10(const std::filesystem::path& folder);

}  // namespace train::data
