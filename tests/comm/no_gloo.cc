#include "scalecom/core/error.h"
#include "tests/comm/gloo.h"

namespace scalecom::comm::testing {

std::vector<std::unique_ptr<Communicator>> make_gloo_world(int, std::chrono::milliseconds) {
  throw core::UsageError("[gloo] this build has no torch");
}

}  // namespace scalecom::comm::testing
