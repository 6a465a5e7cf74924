#pragma once

#include "scalecom/kernels/cpu/lanes.h"

/// Between fp32 and the types of gradients and of the wire.
namespace scalecom::kernels::cpu {

template <typename L>
bool load(const void* grad, core::DType dtype, std::int64_t count, float factor, float* out) {
  return with_elements<L>(dtype, const_cast<void*>(grad), [&](const auto* in) {
    const auto factors = L::broadcast(factor);
    bool finite = true;
    for_each_vector<L>(out, 0, count, [&](std::int64_t i, auto... mask) {
      const auto x = L::times(L::load(in + i, mask...), factors);
      if (L::any(not_finite<L>(x))) finite = false;
      L::store(out + i, x, mask...);
    });
    return finite;
  });
}

template <typename L>
void store(const float* in, std::int64_t count, float factor, void* grad, core::DType dtype) {
  with_elements<L>(dtype, grad, [&](auto* out) {
    const auto factors = L::broadcast(factor);
    for_each_vector<L>(in, 0, count, [&](std::int64_t i, auto... mask) {
      L::store(out + i, L::times(L::load(in + i, mask...), factors), mask...);
    });
  });
}

template <typename L, typename G>
void narrow_to(const float* in, std::int64_t count, int largest, G* out) {
  for_each_vector<L>(in, 0, count, [&](std::int64_t i, auto... mask) {
    L::store(out + i, saturated<L>(L::load(in + i, mask...), largest), mask...);
  });
}

template <typename L>
void narrow(const float* in, std::int64_t count, core::DType type, std::uint16_t* out) {
  if (type == core::DType::kFloat16) {
    narrow_to<L>(in, count, kLargestFloat16, reinterpret_cast<Float16*>(out));
  } else {
    narrow_to<L>(in, count, kLargestBFloat16, reinterpret_cast<BFloat16*>(out));
  }
}

template <typename L, typename G>
void widen_from(const G* in, std::int64_t count, float* out) {
  for_each_vector<L>(out, 0, count, [&](std::int64_t i, auto... mask) {
    L::store(out + i, L::load(in + i, mask...), mask...);
  });
}

template <typename L>
void widen(const std::uint16_t* in, std::int64_t count, core::DType type, float* out) {
  if (type == core::DType::kFloat16) {
    widen_from<L>(reinterpret_cast<const Float16*>(in), count, out);
  } else {
    widen_from<L>(reinterpret_cast<const BFloat16*>(in), count, out);
  }
}

}  // namespace scalecom::kernels::cpu
