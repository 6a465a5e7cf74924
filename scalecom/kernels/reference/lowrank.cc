#include "scalecom/kernels/reference/lowrank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace scalecom::kernels::reference {
namespace {

using core::DType;
using lowrank::Factors;
using lowrank::Matrix;

float load(const Matrix& matrix, std::int64_t at) {
  if (matrix.dtype == DType::kFloat32) return static_cast<const float*>(matrix.grad)[at];
  return core::from_bits16(matrix.dtype, static_cast<const std::uint16_t*>(matrix.grad)[at]);
}

void store(const Matrix& matrix, std::int64_t at, float value) {
  if (matrix.dtype == DType::kFloat32) {
    static_cast<float*>(matrix.grad)[at] = value;
    return;
  }
  static_cast<std::uint16_t*>(matrix.grad)[at] = matrix.dtype == DType::kFloat16
                                                     ? core::to_float16_bits(value)
                                                     : core::to_bfloat16_bits(value);
}

bool too_large(float value) {
  return !(std::abs(value) <= lowrank::kMost);
}

// The product of `count` numbers of a row with a factor's: lanes, then halves.
float piece_product(const float* m, const float* q, std::int64_t count) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> lanes{};
  for (std::int64_t j = 0; j < count; j += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const std::int64_t at = j + static_cast<std::int64_t>(l);
      const bool inside = at < count;  // the last round is filled up with zeros
      lanes[l] = std::fma(inside ? m[at] : 0.0F, inside ? q[at] : 0.0F, lanes[l]);
    }
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

}  // namespace

bool accumulate_low_rank(const Matrix& matrix, Factors last, const float* q, std::int64_t rank,
                         std::int64_t begin, std::int64_t end, float* p) {
  bool finite = true;
  for (std::int64_t i = begin; i < end; ++i) {
    float* const row = matrix.memory + i * matrix.columns;
    for (std::int64_t j = 0; j < matrix.columns; ++j) {
      float left = row[j];
      for (std::int64_t k = 0; k < rank; ++k) {
        left = std::fma(-last.p[i * rank + k], last.q[k * matrix.columns + j], left);
      }
      const float sum = left + load(matrix, i * matrix.columns + j);
      if (too_large(sum)) {
        finite = false;
        row[j] = too_large(left) ? std::copysign(lowrank::kMost, left) : left;
      } else {
        row[j] = sum;
      }
    }
    for (std::int64_t k = 0; k < rank; ++k) {
      float sum = 0;
      for (std::int64_t j = 0; j < matrix.columns; j += lowrank::kPiece) {
        sum += piece_product(row + j, q + k * matrix.columns + j,
                             std::min(lowrank::kPiece, matrix.columns - j));
      }
      p[i * rank + k] = sum;
    }
  }
  return finite;
}

void project_low_rank(const Matrix& matrix, const float* p, std::int64_t rank, std::int64_t begin,
                      std::int64_t end, std::int64_t first, std::int64_t last, float* q,
                      std::int64_t stride) {
  for (std::int64_t k = 0; k < rank; ++k) {
    for (std::int64_t j = first; j < last; ++j) {
      float sum = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        sum = std::fma(matrix.memory[i * matrix.columns + j], p[i * rank + k], sum);
      }
      q[k * stride + j - first] = sum;
    }
  }
}

void expand_low_rank(const Matrix& matrix, Factors factors, std::int64_t rank, std::int64_t begin,
                     std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t j = 0; j < matrix.columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < rank; ++k) {
        sum = std::fma(factors.p[i * rank + k], factors.q[k * matrix.columns + j], sum);
      }
      store(matrix, i * matrix.columns + j, sum);
    }
  }
}

}  // namespace scalecom::kernels::reference
