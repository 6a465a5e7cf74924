#include "scalecom/comm/nccl/nccl.h"

#include <cstring>

#include "scalecom/comm/nccl/communicator.h"
#include "scalecom/comm/together.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::comm::nccl {
namespace {

void check_device(core::Device device) {
  if (!device.is_cuda()) {
    throw core::UsageError(core::concat("[nccl] a rank on ", core::to_string(device),
                                        "; NCCL's ranks have a CUDA device each"));
  }
  core::cuda::require(device);
}

}  // namespace

bool is_available() {
  return true;
}

Id make_id() {
  ncclUniqueId unique{};
  if (const ncclResult_t status = ncclGetUniqueId(&unique); status != ncclSuccess) {
    throw core::DeviceError("[nccl] " + error_text(status));
  }
  Id id{};
  std::memcpy(id.data(), unique.internal, id.size());
  return id;
}

std::unique_ptr<Communicator> make_communicator(const Id& id, int rank, int size,
                                                core::Device device,
                                                std::chrono::milliseconds deadline) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw core::UsageError(core::concat("[nccl] rank ", rank, " of ", size,
                                        "; a world has 1 rank or more, from 0 on"));
  }
  check_device(device);
  auto handle = std::make_unique<Handle>(id, rank, size, device, checked_deadline(deadline));
  return std::make_unique<NcclCommunicator>(std::move(handle), rank, size, deadline);
}

std::unique_ptr<Communicator> make_communicator(Communicator& other, core::Device device,
                                                std::chrono::milliseconds deadline) {
  Id id{};
  together(other, [&] {
    check_device(device);
    if (other.rank() == 0) id = make_id();
  });
  other.broadcast(id, 0);
  return make_communicator(id, other.rank(), other.size(), device, deadline);
}

}  // namespace scalecom::comm::nccl
