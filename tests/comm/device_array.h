#pragma once

#include <vector>

#include "scalecom/core/array.h"

namespace scalecom::comm::testing {

/// A host array's copy on the stream's device, complete when it returns.
template <typename T>
core::Array<T> to_device(const std::vector<T>& host, const core::Stream& stream) {
  core::Array<T> array(stream.device(), static_cast<std::int64_t>(host.size()));
  core::cuda::copy(array.data(), host.data(), array.size() * static_cast<std::int64_t>(sizeof(T)),
                   stream);
  core::cuda::synchronize(stream);
  return array;
}

/// What an array holds when all that is on the stream is done.
template <typename T>
std::vector<T> to_host(const core::Array<T>& array, const core::Stream& stream) {
  std::vector<T> host(static_cast<std::size_t>(array.size()));
  core::cuda::copy(host.data(), array.data(), array.size() * static_cast<std::int64_t>(sizeof(T)),
                   stream);
  core::cuda::synchronize(stream);
  return host;
}

}  // namespace scalecom::comm::testing
