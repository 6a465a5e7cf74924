#include "cli/device_ranks.h"

#include <cstdlib>

#include "scalecom/comm/nccl/nccl.h"
#include "scalecom/core/text.h"

namespace cli {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;

// Launchers say the process's place among those of its host in variables of their own.
int local_rank() {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    if (const char* const text = std::getenv(name)) return std::atoi(text);
  }
  return 0;
}

}  // namespace

DeviceRanks::DeviceRanks(train::loop::Processes& processes, const std::string& device,
                         std::chrono::milliseconds deadline)
    : ranks_(&processes.between()) {
  const core::Device own =
      core::parse_device(device == "cuda" ? core::concat("cuda:", local_rank()) : device);
  if (!own.is_cuda()) return;
  stream_ = core::Stream::cuda(own);
  if (processes.size() == 1) return;
  nccl_ = comm::nccl::make_communicator(processes.between(), own, deadline);
  ranks_ = nccl_.get();
}

}  // namespace cli
