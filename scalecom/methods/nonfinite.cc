#include "scalecom/methods/nonfinite.h"

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::methods {

void OnNonFinite::refuse(const std::string& method, std::int64_t step) const {
  if (!is_error()) return;
  throw core::CheckError(core::concat("[", method, "] step ", step,
                                      ": a gradient of some rank is not finite; nothing was sent, "
                                      "and what is finite stays in the memories"));
}

}  // namespace scalecom::methods
