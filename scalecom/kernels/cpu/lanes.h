#pragma once

#include <cstdint>
#include <type_traits>

#include "scalecom/kernels/kernels.h"

/// The vector kernels, written once over `L`, the lanes of an instruction set: see Avx512 for what
/// an L offers. Every L lives in an unnamed namespace, and everything under cpu/ that does work is
/// a template over it, so each instruction set has instantiations of its own: the linker cannot
/// hand AVX-512 code to a processor without it. For the same reason nothing here calls an inline
/// function of the standard library or of another folder.
namespace scalecom::kernels::cpu {

struct Float16 {
  std::uint16_t bits;
};

struct BFloat16 {
  std::uint16_t bits;
};

constexpr std::int64_t kLineBytes = 64;

constexpr int kMagnitude = 0x7fffffff;
constexpr int kLargestFinite = 0x7f7fffff;
/// The largest finite numbers of the 16-bit types, as fp32 bits.
constexpr int kLargestFloat16 = 0x477fe000;
constexpr int kLargestBFloat16 = 0x7f7f0000;

/// Calls body(pointer to the elements of `data` in their type).
template <typename L, typename Body>
auto with_elements(core::DType dtype, void* data, Body body) {
  switch (dtype) {
    case core::DType::kFloat16:
      return body(static_cast<Float16*>(data));
    case core::DType::kBFloat16:
      return body(static_cast<BFloat16*>(data));
    case core::DType::kFloat32:
      break;
  }
  return body(static_cast<float*>(data));
}

template <typename L>
std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return b < a ? b : a;
}

/// The bits without the sign: they order as the magnitudes do.
template <typename L>
typename L::Ints key_of(typename L::Floats u) {
  return L::both(L::bits(u), L::broadcast(kMagnitude));
}

/// Lanes that are infinite or NaN.
template <typename L>
typename L::Mask not_finite(typename L::Floats u) {
  return L::greater(key_of<L>(u), L::broadcast(kLargestFinite));
}

/// The finite lanes brought to at most `largest`, as core::round_to has it.
template <typename L>
typename L::Floats saturated(typename L::Floats x, int largest) {
  const auto key = key_of<L>(x);
  const auto over = L::without(L::greater(key, L::broadcast(largest)),
                               L::greater(key, L::broadcast(kLargestFinite)));
  const auto sign = L::both(L::bits(x), L::broadcast(~kMagnitude));
  return L::select(over, L::floats(L::either(sign, L::broadcast(largest))), x);
}

/// core::round_to, lane by lane.
template <typename L>
typename L::Floats rounded(core::DType type, typename L::Floats x) {
  switch (type) {
    case core::DType::kFloat16:
      return L::through_float16(saturated<L>(x, kLargestFloat16));
    case core::DType::kBFloat16:
      return L::through_bfloat16(saturated<L>(x, kLargestBFloat16));
    case core::DType::kFloat32:
      break;
  }
  return x;
}

/// Runs step(i) for whole vectors and step(i, mask) for the pieces at the ends of [begin, end),
/// whole vectors lying at the boundaries of `base`'s vectors.
template <typename L, typename Step>
void for_each_vector(const float* base, std::int64_t begin, std::int64_t end, Step step) {
  constexpr std::int64_t kWidth = L::kWidth;
  if (begin >= end) return;
  const auto address = reinterpret_cast<std::uintptr_t>(base + begin);
  const auto into = static_cast<std::int64_t>(address / sizeof(float) % kWidth);
  std::int64_t i = begin - into;
  if (into > 0) {
    step(i, L::lanes(into, end - i));
    i += kWidth;
  }
  for (; i + kWidth <= end; i += kWidth) step(i);
  if (i < end) step(i, L::lanes(0, end - i));
}

}  // namespace scalecom::kernels::cpu
