#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "scalecom/plan/model.h"

/// A model to plan for.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::Limits limits((std::size_t{1} << 18) + 512 * size);
  try {
    scalecom::plan::parse_model({reinterpret_cast<const char*>(data), size});
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
