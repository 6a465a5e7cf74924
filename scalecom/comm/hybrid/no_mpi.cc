#include "scalecom/comm/hybrid/hybrid.h"
#include "scalecom/core/error.h"

namespace scalecom::comm::hybrid {

std::vector<std::unique_ptr<Communicator>> make_world(int, std::chrono::milliseconds) {
  throw core::UsageError(
      "[hybrid] this build has no MPI; install Open MPI and build with -DSCALECOM_MPI=ON, or run "
      "all ranks in one process with inproc");
}

}  // namespace scalecom::comm::hybrid
