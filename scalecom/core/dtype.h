#pragma once

#include <bit>
#include <cstdint>

namespace scalecom::core {

/// The element types of gradients and of values on the wire. Memories are always fp32.
enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16 };

constexpr std::int64_t size_of(DType type) {
  return type == DType::kFloat32 ? 4 : 2;
}

/// "fp32", "fp16", "bf16"
const char* to_string(DType type);

/// Conversions of one number, rounding to nearest, ties to even. These are the definition that the
/// vector kernels are held to, bit for bit; NaNs stay NaNs of their sign, made quiet.
std::uint16_t to_float16_bits(float value);
float from_float16_bits(std::uint16_t bits);

inline std::uint16_t to_bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x7fc0U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

inline float from_bfloat16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// `value` as it arrives after crossing the wire as `type`. A finite value stays finite: what would
/// round to infinity becomes the largest finite number, and the rest stays in the memory.
float round_to(DType type, float value);

/// The 16-bit pattern of a value that round_to has made representable, and back.
std::uint16_t to_bits16(DType type, float value);
float from_bits16(DType type, std::uint16_t bits);

}  // namespace scalecom::core
