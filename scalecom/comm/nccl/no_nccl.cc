#include "scalecom/comm/nccl/nccl.h"
#include "scalecom/core/error.h"

namespace scalecom::comm::nccl {
namespace {

[[noreturn]] void refuse() {
  throw core::UsageError(
      "[nccl] this build has no NCCL; install it (pip install nvidia-nccl-cu13 into .venv, or the "
      "system's libnccl-dev) and build with -DSCALECOM_CUDA=ON -DSCALECOM_NCCL=ON");
}

}  // namespace

bool is_available() {
  return false;
}
Id make_id() {
  refuse();
}
std::unique_ptr<Communicator> make_communicator(const Id& /*id*/, int /*rank*/, int /*size*/,
                                                core::Device /*device*/,
                                                std::chrono::milliseconds /*deadline*/) {
  refuse();
}
std::unique_ptr<Communicator> make_communicator(Communicator& /*other*/, core::Device /*device*/,
                                                std::chrono::milliseconds /*deadline*/) {
  refuse();
}

}  // namespace scalecom::comm::nccl
