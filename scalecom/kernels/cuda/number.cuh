#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "scalecom/core/dtype.h"

/// The element types on the device: core/dtype.h's conversions, bit for bit.
namespace scalecom::kernels::cuda {

using core::DType;

constexpr std::uint32_t kInfinityBits = 0x7f800000U;
constexpr std::uint32_t kQuietNanBits = 0x7fc00000U;

__device__ inline std::uint32_t magnitude_bits(float value) {
  return __float_as_uint(value) & 0x7fffffffU;
}

__device__ inline bool is_finite(float value) {
  return magnitude_bits(value) < kInfinityBits;
}

/// An element type: how it lies in memory, and what four of them are as one vector.
struct Float32 {
  using Stored = float;
  using Vector = float4;
  static constexpr std::uint32_t kNanPattern = kQuietNanBits;

  __device__ static float load(float stored) { return stored; }
  __device__ static float store(float value) { return value; }
};

struct Float16 {
  using Stored = std::uint16_t;
  using Vector = ushort4;
  static constexpr std::uint32_t kNanPattern = 0x7e007e00U;
  static constexpr std::uint16_t kLargest = 0x7bffU;

  __device__ static float load(std::uint16_t bits) {
    const std::uint32_t magnitude = bits & 0x7fffU;
    if (magnitude > 0x7c00U) {  // a NaN keeps its payload, which the hardware would not
      return __uint_as_float((static_cast<std::uint32_t>(bits & 0x8000U) << 16) | kQuietNanBits |
                             ((magnitude & 0x3ffU) << 13));
    }
    return __half2float(__ushort_as_half(bits));
  }
  __device__ static std::uint16_t store(float value) {
    const std::uint32_t magnitude = magnitude_bits(value);
    if (magnitude > kInfinityBits) {
      return static_cast<std::uint16_t>(((__float_as_uint(value) >> 16) & 0x8000U) | 0x7e00U |
                                        ((magnitude >> 13) & 0x3ffU));
    }
    return __half_as_ushort(__float2half_rn(value));
  }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  using Vector = ushort4;
  static constexpr std::uint32_t kNanPattern = 0x7fc07fc0U;
  static constexpr std::uint16_t kLargest = 0x7f7fU;

  __device__ static float load(std::uint16_t bits) {
    return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
  }
  __device__ static std::uint16_t store(float value) {
    const std::uint32_t bits = __float_as_uint(value);
    if (magnitude_bits(value) > kInfinityBits) {
      return static_cast<std::uint16_t>((bits >> 16) | 0x7fc0U);
    }
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  }
};

/// Calls `body` with the type that `dtype` names.
template <typename Body>
void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      return body(Float32());
    case DType::kFloat16:
      return body(Float16());
    case DType::kBFloat16:
      return body(BFloat16());
  }
}

/// The 16-bit pattern of core::round_to(type, value): a finite value stays finite.
template <typename Type>
__device__ std::uint16_t narrowed(float value) {
  const std::uint16_t bits = Type::store(value);
  if (is_finite(value) && !is_finite(Type::load(bits))) {
    return static_cast<std::uint16_t>((bits & 0x8000U) | Type::kLargest);
  }
  return bits;
}

/// core::round_to.
__device__ inline float rounded_to(DType type, float value) {
  switch (type) {
    case DType::kFloat16:
      return Float16::load(narrowed<Float16>(value));
    case DType::kBFloat16:
      return BFloat16::load(narrowed<BFloat16>(value));
    case DType::kFloat32:
      break;
  }
  return value;
}

}  // namespace scalecom::kernels::cuda
