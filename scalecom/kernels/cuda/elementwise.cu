#include "scalecom/kernels/cuda/elementwise.h"

#include <algorithm>

#include "scalecom/core/cuda/native.h"
#include "scalecom/kernels/cuda/grid.cuh"
#include "scalecom/kernels/cuda/number.cuh"
#include "scalecom/kernels/cuda/policy.h"

namespace scalecom::kernels::cuda::elementwise {
namespace {

using Policy = policy::Elementwise;

template <typename T>
bool takes_vectors(const T* d_array) {
  return reinterpret_cast<std::uintptr_t>(d_array) % (4 * sizeof(T)) == 0;
}

// visit(i) for every i below `count`; visit.four(i) for 4 from i on, as far as `vectors` allows.
template <typename Visit>
__global__ void __launch_bounds__(Policy::kThreads)
    visit_kernel(std::int64_t count, bool vectors, Visit visit) {
  const std::int64_t thread =
      std::int64_t{blockIdx.x} * Policy::kThreads + static_cast<std::int64_t>(threadIdx.x);
  const std::int64_t threads = std::int64_t{gridDim.x} * Policy::kThreads;
  const std::int64_t fours = vectors ? count / 4 : 0;
#pragma unroll Policy::kUnroll
  for (std::int64_t i = thread; i < fours; i += threads) visit.four(4 * i);
  for (std::int64_t i = 4 * fours + thread; i < count; i += threads) visit(i);
}

template <typename Visit>
void launch(std::int64_t count, bool vectors, const char* name, const core::Stream& stream,
            const Visit& visit) {
  if (count == 0) return;
  const core::cuda::DeviceScope scope(stream.device());
  const std::int64_t work = blocks_for(vectors ? count / 4 + 1 : count, Policy::kThreads);
  visit_kernel<<<resident_blocks(work, Policy::kBlocksPerProcessor), Policy::kThreads, 0,
                 core::cuda::native(stream)>>>(count, vectors, visit);
  core::cuda::check(cudaGetLastError(), name);
}

// out[i] = change(in[i]), the elements being of the types In and Out as they lie.
template <typename In, typename Out, typename Change>
struct Transform {
  struct alignas(4 * sizeof(In)) FourIn {
    In at[4];
  };
  struct alignas(4 * sizeof(Out)) FourOut {
    Out at[4];
  };

  __device__ void four(std::int64_t i) const {
    const FourIn in = *reinterpret_cast<const FourIn*>(d_in + i);
    FourOut out;
#pragma unroll
    for (int e = 0; e < 4; ++e) out.at[e] = change(in.at[e]);
    *reinterpret_cast<FourOut*>(d_out + i) = out;
  }
  __device__ void operator()(std::int64_t i) const {
    d_out[i] = change(d_in[i]);
  }

  const In* d_in;
  Out* d_out;
  Change change;
};

template <typename In, typename Out, typename Change>
void transform(const In* d_in, std::int64_t count, Out* d_out, const char* name,
               const core::Stream& stream, const Change& change) {
  launch(count, takes_vectors(d_in) && takes_vectors(d_out), name, stream,
         Transform<In, Out, Change>{d_in, d_out, change});
}

// Calls `body` with the type that a 16-bit `type` names.
template <typename Body>
void with_narrow(DType type, Body body) {
  if (type == DType::kFloat16) {
    body(Float16());
  } else {
    body(BFloat16());
  }
}

template <typename Type>
struct Load {
  float factor;
  __device__ float operator()(typename Type::Stored stored) const {
    return __fmul_rn(Type::load(stored), factor);
  }
};

template <typename Type>
struct Store {
  const Flag* d_flag;
  __device__ typename Type::Stored operator()(float value) const {
    return Type::store(*d_flag != 0 ? __uint_as_float(kQuietNanBits) : value);
  }
};

template <typename Type>
struct Narrow {
  __device__ std::uint16_t operator()(float value) const { return narrowed<Type>(value); }
};

template <typename Type>
struct Widen {
  __device__ float operator()(std::uint16_t bits) const { return Type::load(bits); }
};

struct Scale {
  float factor;
  __device__ float operator()(float value) const { return __fmul_rn(value, factor); }
};

struct CheckFinite {
  __device__ void four(std::int64_t i) const {
    const float4 numbers = *reinterpret_cast<const float4*>(d_numbers + i);
    if (!is_finite(numbers.x) || !is_finite(numbers.y) || !is_finite(numbers.z) ||
        !is_finite(numbers.w)) {
      *d_flag = 1;
    }
  }
  __device__ void operator()(std::int64_t i) const {
    if (!is_finite(d_numbers[i])) *d_flag = 1;
  }

  const float* d_numbers;
  Flag* d_flag;
};

// A visit that knows no vectors.
template <typename Visit>
struct OneByOne : Visit {
  __device__ void four(std::int64_t i) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) (*this)(i + e);
  }
};

template <typename Type>
struct MeanOfNarrow {
  __device__ void operator()(std::int64_t i) const {
    float sum = Type::load(d_arrived[i]);
    for (int r = 1; r < ranks; ++r) sum = __fadd_rn(sum, Type::load(d_arrived[r * count + i]));
    const std::uint16_t bits = narrowed<Type>(__fmul_rn(sum, factor));
    d_mean[i] = bits;
    d_rounding[i] = __fmaf_rn(-size, Type::load(bits), sum);
  }

  const std::uint16_t* d_arrived;
  std::int64_t count;
  int ranks;
  float size;
  float factor;
  std::uint16_t* d_mean;
  float* d_rounding;
};

struct AddQuotient {
  __device__ void operator()(std::int64_t i) const {
    d_to[i] = __fadd_rn(d_to[i], __fmul_rn(__fdiv_rn(d_from[i], divisor), factor));
  }

  float* d_to;
  const float* d_from;
  float divisor;
  float factor;
};

struct Arrays {
  Numbers of[Policy::kArrays];
};

// A row of blocks an array. There is nothing to do in most steps, as a loss scale seldom changes.
__global__ void __launch_bounds__(Policy::kThreads)
    scale_all_kernel(const __grid_constant__ Arrays arrays, const float* d_factor) {
  const float factor = *d_factor;
  if (factor == 1.0F) return;
  const Numbers& array = arrays.of[blockIdx.y];
  const std::int64_t threads = std::int64_t{gridDim.x} * Policy::kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * Policy::kThreads + threadIdx.x; i < array.count;
       i += threads) {
    array.data[i] = __fmul_rn(array.data[i], factor);
  }
}

__global__ void follow_kernel(const float* d_now, float* d_last, float* d_factor, Flag* d_fell) {
  const float now = *d_now;
  const float last = *d_last;
  *d_factor = last > 0 ? __fdiv_rn(now, last) : 1.0F;
  *d_fell = last > 0 && now < last ? 1 : 0;
  *d_last = now;
}

}  // namespace

void load(const void* d_grad, core::DType dtype, std::int64_t count, float factor, float* d_out,
          const core::Stream& stream) {
  with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    transform(static_cast<const typename Type::Stored*>(d_grad), count, d_out, "load", stream,
              Load<Type>{factor});
  });
}

void check_finite(const float* d_numbers, std::int64_t count, Flag* d_flag,
                  const core::Stream& stream) {
  launch(count, takes_vectors(d_numbers), "check_finite", stream, CheckFinite{d_numbers, d_flag});
}

void store(const float* d_in, std::int64_t count, void* d_grad, core::DType dtype,
           const Flag* d_flag, const core::Stream& stream) {
  with_type(dtype, [&](auto type) {
    using Type = decltype(type);
    transform(d_in, count, static_cast<typename Type::Stored*>(d_grad), "store", stream,
              Store<Type>{d_flag});
  });
}

void narrow(const float* d_in, std::int64_t count, core::DType type, std::uint16_t* d_out,
            const core::Stream& stream) {
  with_narrow(type, [&](auto narrow) {
    transform(d_in, count, d_out, "narrow", stream, Narrow<decltype(narrow)>{});
  });
}

void widen(const std::uint16_t* d_in, std::int64_t count, core::DType type, float* d_out,
           const core::Stream& stream) {
  with_narrow(type, [&](auto narrow) {
    transform(d_in, count, d_out, "widen", stream, Widen<decltype(narrow)>{});
  });
}

void mean_of_narrow(const std::uint16_t* d_arrived, std::int64_t count, int ranks, core::DType type,
                    std::uint16_t* d_mean, float* d_rounding, const core::Stream& stream) {
  const auto size = static_cast<float>(ranks);
  const float factor = 1.0F / size;
  with_narrow(type, [&](auto narrow) {
    launch(count, false, "mean_of_narrow", stream,
           OneByOne<MeanOfNarrow<decltype(narrow)>>{
               {d_arrived, count, ranks, size, factor, d_mean, d_rounding}});
  });
}

void add_quotient(float* d_to, const float* d_from, std::int64_t count, float divisor, float factor,
                  const core::Stream& stream) {
  launch(count, false, "add_quotient", stream,
         OneByOne<AddQuotient>{{d_to, d_from, divisor, factor}});
}

void scale(float* d_numbers, std::int64_t count, float factor, const core::Stream& stream) {
  transform(static_cast<const float*>(d_numbers), count, d_numbers, "scale", stream, Scale{factor});
}

void scale_all(std::span<const Numbers> arrays, const float* d_factor, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  for (std::size_t begin = 0; begin < arrays.size(); begin += Policy::kArrays) {
    const auto some =
        arrays.subspan(begin, std::min<std::size_t>(arrays.size() - begin, Policy::kArrays));
    Arrays batch;
    std::copy(some.begin(), some.end(), batch.of);
    std::int64_t longest = 1;
    for (const Numbers& array : some) longest = std::max(longest, array.count);
    const dim3 grid(resident_blocks(blocks_for(longest, Policy::kThreads), 1),
                    static_cast<unsigned>(some.size()));
    scale_all_kernel<<<grid, Policy::kThreads, 0, core::cuda::native(stream)>>>(batch, d_factor);
    core::cuda::check(cudaGetLastError(), "scale_all");
  }
}

void follow(const float* d_now, float* d_last, float* d_factor, Flag* d_fell,
            const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  follow_kernel<<<1, 1, 0, core::cuda::native(stream)>>>(d_now, d_last, d_factor, d_fell);
  core::cuda::check(cudaGetLastError(), "follow");
}

}  // namespace scalecom::kernels::cuda::elementwise
