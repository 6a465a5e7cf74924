#include "fuzz/input.h"
#include "fuzz/limits.h"
#include "scalecom/core/error.h"
#include "scalecom/methods/method.h"

/// A method's option string: refused, or printed in a form that makes the same method.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const fuzz::Limits limits((std::size_t{1} << 20) + 64 * size);
  try {
    const std::string spec = scalecom::methods::make(text)->spec();
    fuzz::require(scalecom::methods::make(spec)->spec() == spec, "a spec gives itself");
  } catch (const scalecom::core::UsageError&) {
  }
  return 0;
}
