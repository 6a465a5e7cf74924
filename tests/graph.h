#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/stream.h"

namespace scalecom::testing {

/// What was put on a stream while it was captured, to be run again.
class Graph {
 public:
  Graph(const core::Stream& stream, const std::function<void()>& body)
      : stream_(static_cast<cudaStream_t>(stream.native())) {
    core::cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    try {
      body();
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(stream_, &graph_));
      if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
      static_cast<void>(cudaGetLastError());
      throw;
    }
    core::cuda::check(cudaStreamEndCapture(stream_, &graph_), "end of capture");
    core::cuda::check(cudaGraphInstantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
  }
  ~Graph() {
    static_cast<void>(cudaGraphExecDestroy(ready_));
    static_cast<void>(cudaGraphDestroy(graph_));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const { core::cuda::check(cudaGraphLaunch(ready_, stream_), "cudaGraphLaunch"); }

  /// How many kernels it launches.
  int kernels() const {
    std::size_t count = 0;
    core::cuda::check(cudaGraphGetNodes(graph_, nullptr, &count), "cudaGraphGetNodes");
    std::vector<cudaGraphNode_t> nodes(count);
    core::cuda::check(cudaGraphGetNodes(graph_, nodes.data(), &count), "cudaGraphGetNodes");
    int kernels = 0;
    for (cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      core::cuda::check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
      kernels += type == cudaGraphNodeTypeKernel ? 1 : 0;
    }
    return kernels;
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace scalecom::testing
