#include <vector>

#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "scalecom/state/safetensors.h"

/// A file of tensors, all of which are read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path path = fuzz::folder() / "one.safetensors";
  fuzz::write(path, data, size);
  const fuzz::Limits limits((std::size_t{1} << 18) + 128 * size);
  try {
    const scalecom::state::SafetensorsReader reader(path);
    for (const auto& tensor : reader.tensors()) {
      if (tensor.dtype != "F32") continue;
      std::vector<float> values(static_cast<std::size_t>(tensor.elements));
      reader.read(tensor, 0, values);
    }
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
