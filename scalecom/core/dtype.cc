#include "scalecom/core/dtype.h"

#include <cmath>

namespace scalecom::core {

const char* to_string(DType type) {
  switch (type) {
    case DType::kFloat32:
      return "fp32";
    case DType::kFloat16:
      return "fp16";
    case DType::kBFloat16:
      return "bf16";
  }
  return "?";
}

std::uint16_t to_float16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: quiet, its upper payload kept, as F16C and CUDA do
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  }
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds to inf
  if (magnitude >= 0x38800000U) {  // a normal half: rebias the exponent, round the mantissa
    const std::uint32_t rebased = magnitude - 0x38000000U;
    return static_cast<std::uint16_t>(sign | ((rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13));
  }
  if (magnitude < 0x33000000U) return sign;  // under half of the smallest denormal
  // A denormal half counts units of 2^-24.
  const std::uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t shift = 126U - (magnitude >> 23);
  const std::uint32_t whole = mantissa >> shift;
  const std::uint32_t rest = mantissa & ((1U << shift) - 1U);
  const std::uint32_t half = 1U << (shift - 1U);
  const bool up = rest > half || (rest == half && (whole & 1U) != 0U);
  return static_cast<std::uint16_t>(sign | (whole + (up ? 1U : 0U)));
}

float from_float16_bits(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0x1fU) {
    const std::uint32_t quiet = mantissa != 0U ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7f800000U | quiet | (mantissa << 13));
  }
  if (exponent == 0U) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0U ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

std::uint16_t to_bits16(DType type, float value) {
  return type == DType::kFloat16 ? to_float16_bits(value) : to_bfloat16_bits(value);
}

float from_bits16(DType type, std::uint16_t bits) {
  return type == DType::kFloat16 ? from_float16_bits(bits) : from_bfloat16_bits(bits);
}

float round_to(DType type, float value) {
  if (type == DType::kFloat32) return value;
  const float rounded = from_bits16(type, to_bits16(type, value));
  if (std::isinf(rounded) && std::isfinite(value)) {
    const std::uint16_t largest = type == DType::kFloat16 ? 0x7bffU : 0x7f7fU;
    return std::copysign(from_bits16(type, largest), value);
  }
  return rounded;
}

}  // namespace scalecom::core
