#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/stream.h"

namespace scalecom::comm::testing {

/// What `body` puts on the stream, as a CUDA graph.
class Capture {
 public:
  Capture(const core::Stream& stream, const std::function<void()>& body)
      : stream_(static_cast<cudaStream_t>(stream.native())) {
    core::cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin");
    try {
      body();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream_, &graph_));
      static_cast<void>(cudaGetLastError());
      throw;
    }
    core::cuda::check(cudaStreamEndCapture(stream_, &graph_), "end");
    core::cuda::check(cudaGraphInstantiate(&exec_, graph_, 0), "instantiate");
  }
  ~Capture() {
    static_cast<void>(cudaGraphExecDestroy(exec_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void replay() { core::cuda::check(cudaGraphLaunch(exec_, stream_), "launch"); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace scalecom::comm::testing
