#include <cstdlib>

#include "scalecom/comm/mpi/mpi.h"

namespace scalecom::comm::mpi {

bool is_launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

}  // namespace scalecom::comm::mpi
