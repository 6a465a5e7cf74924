#include "train/machine/host_copy.h"

#include <algorithm>

#include "scalecom/core/cuda/runtime.h"

namespace train::machine {
namespace {

namespace core = scalecom::core;

void copy(const float* from, float* to, std::size_t elements, const core::Stream& stream) {
  if (!stream.device().is_cuda()) {
    std::copy(from, from + elements, to);
    return;
  }
  core::cuda::copy(to, from, static_cast<std::int64_t>(elements * sizeof(float)), stream);
  core::cuda::synchronize(stream);
}

}  // namespace

core::AlignedArray<float> to_host(std::span<const float> values, const core::Stream& stream) {
  core::AlignedArray<float> host(static_cast<std::int64_t>(values.size()));
  copy(values.data(), host.data(), values.size(), stream);
  return host;
}

void from_host(std::span<const float> host, std::span<float> values, const core::Stream& stream) {
  copy(host.data(), values.data(), host.size(), stream);
}

}  // namespace train::machine
