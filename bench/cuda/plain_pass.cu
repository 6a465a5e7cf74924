#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "bench/cuda/plain_pass.h"
#include "scalecom/core/cuda/check.h"

namespace bench::cuda {
namespace {

namespace core = scalecom::core;

constexpr int kThreads = 256;
constexpr int kVector = 4;  // elements a thread

template <typename T>
struct alignas(sizeof(T) * kVector) Vector {
  T lane[kVector];
};

template <typename T>
__global__ void add_scaled(Vector<float>* memory, const Vector<T>* gradient, float beta,
                           std::int64_t vectors) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= vectors) return;
  Vector<float> m = memory[i];
  const Vector<T> g = gradient[i];
  for (int k = 0; k < kVector; ++k) m.lane[k] += beta * static_cast<float>(g.lane[k]);
  memory[i] = m;
}

template <typename T>
void launch(float* d_memory, const void* d_gradient, float beta, std::int64_t elements,
            cudaStream_t stream) {
  const std::int64_t vectors = elements / kVector;  // what is left over does not matter here
  if (vectors == 0) return;
  add_scaled<T>
      <<<static_cast<unsigned>((vectors + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
          reinterpret_cast<Vector<float>*>(d_memory), static_cast<const Vector<T>*>(d_gradient),
          beta, vectors);
  core::cuda::check(cudaGetLastError(), "plain pass");
}

}  // namespace

void plain_pass(float* d_memory, const void* d_gradient, core::DType type, float beta,
                std::int64_t elements, const core::Stream& stream) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  switch (type) {
    case core::DType::kFloat32:
      return launch<float>(d_memory, d_gradient, beta, elements, native);
    case core::DType::kFloat16:
      return launch<__half>(d_memory, d_gradient, beta, elements, native);
    case core::DType::kBFloat16:
      return launch<__nv_bfloat16>(d_memory, d_gradient, beta, elements, native);
  }
}

}  // namespace bench::cuda
