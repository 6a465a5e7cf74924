#include "scalecom/core/error.h"
#include "scalecom/torch/torchrun.h"

namespace scalecom::torch {
namespace {

[[noreturn]] void refuse() {
  throw core::UsageError(
      "[torchrun] this build has no libtorch, and torchrun's processes meet by it: build with "
      "-DSCALECOM_PROGRAM=ON");
}

}  // namespace

Launcher launcher() {
  return Launcher::kNone;
}

struct Torchrun::Meeting {};

Torchrun::Torchrun(std::chrono::milliseconds /*deadline*/) {
  refuse();
}
Torchrun::~Torchrun() = default;

int Torchrun::rank() const {
  return meeting_ ? 1 : 0;
}
int Torchrun::size() const {
  return meeting_ ? 0 : 1;
}
std::shared_ptr<comm::Link> Torchrun::open_link(std::chrono::milliseconds /*deadline*/,
                                                int /*ranks*/) {
  refuse();
}

}  // namespace scalecom::torch
