#include "train/data/cifar10.h"
#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"

/// One file in the place of all six of CIFAR-10.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "one.bin";
  static const bool linked = [&] {
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
      std::filesystem::create_symlink(path, fuzz::folder() / name);
    }
    return true;
  }();
  fuzz::require(linked, "files can be linked");
  fuzz::write(path, data, size);
  const fuzz::Limits limits((std::size_t{1} << 18) + 128 * size);
  try {
    train::data::read_cifar10(fuzz::folder());
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
