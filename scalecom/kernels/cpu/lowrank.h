#pragma once

#include "scalecom/kernels/cpu/lanes.h"

/// The passes over a matrix and its thin factors. Rows are taken several at a time, so that the
/// factors come from the cache once for all of them.
namespace scalecom::kernels::cpu {

/// Rows that share a read of the factors, and factors that share a read of the rows: their products
/// have to stay in registers.
template <typename L>
constexpr int kRowsTogether = L::kWidth == 16 ? 4 : 2;
template <typename L>
constexpr int kFactorsTogether = L::kWidth == 16 ? 4 : 2;

/// step(i) for whole vectors of [0, count) and step(i, mask) for the rest.
template <typename L, typename Step>
void for_each_lane(std::int64_t count, Step step) {
  std::int64_t i = 0;
  for (; i + L::kWidth <= count; i += L::kWidth) step(i);
  if (i < count) step(i, L::lanes(0, count - i));
}

template <typename L>
float folded(const float* lanes) {
  float sums[16];
  for (int l = 0; l < 16; ++l) sums[l] = lanes[l];
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) sums[l] += sums[l + half];
  }
  return sums[0];
}

/// sums[r * rank + k] += row r times factor k, over `count` columns: 16 chains each.
template <typename L, int kRows, int kFactors>
void add_products(const float* rows, std::int64_t columns, const float* q, std::int64_t count,
                  std::int64_t rank, float* sums) {
  constexpr int kParts = 16 / L::kWidth;
  typename L::Floats chains[kRows][kFactors][kParts];
  for (auto& row : chains) {
    for (auto& factor : row) {
      for (auto& part : factor) part = L::broadcast(0.0F);
    }
  }
  const auto step = [&](std::int64_t j, auto... mask) {
    for (int part = 0; part < kParts; ++part) {
      const std::int64_t at = j + part * L::kWidth;
      typename L::Floats m[kRows];
      for (int r = 0; r < kRows; ++r) m[r] = L::load(rows + r * columns + at, mask(part)...);
      for (int k = 0; k < kFactors; ++k) {
        const auto factor = L::load(q + k * columns + at, mask(part)...);
        for (int r = 0; r < kRows; ++r) {
          chains[r][k][part] = L::fma(m[r], factor, chains[r][k][part]);
        }
      }
    }
  };
  std::int64_t j = 0;
  for (; j + 16 <= count; j += 16) step(j);
  if (j < count) {
    step(j, [left = count - j](int part) {
      const std::int64_t lanes = left - part * L::kWidth;
      return L::lanes(0, lanes > 0 ? lanes : 0);
    });
  }
  for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < kFactors; ++k) {
      float lanes[16];
      for (int part = 0; part < kParts; ++part) {
        L::store(lanes + part * L::kWidth, chains[r][k][part]);
      }
      sums[r * rank + k] += folded<L>(lanes);
    }
  }
}

template <typename L, int kRows>
void add_all_products(const float* rows, std::int64_t columns, const float* q, std::int64_t count,
                      std::int64_t rank, float* sums) {
  std::int64_t k = 0;
  for (; k + kFactorsTogether<L> <= rank; k += kFactorsTogether<L>) {
    add_products<L, kRows, kFactorsTogether<L>>(rows, columns, q + k * columns, count, rank,
                                                sums + k);
  }
  for (; k < rank; ++k) {
    add_products<L, kRows, 1>(rows, columns, q + k * columns, count, rank, sums + k);
  }
}

constexpr int kMostBits = __builtin_bit_cast(int, lowrank::kMost);

template <typename L>
typename L::Mask too_large(typename L::Floats x) {
  return L::greater(key_of<L>(x), L::broadcast(kMostBits));
}

template <typename L>
typename L::Floats at_most(typename L::Floats x) {
  const auto sign = L::both(L::bits(x), L::broadcast(~kMagnitude));
  return L::select(too_large<L>(x), L::floats(L::either(sign, L::broadcast(kMostBits))), x);
}

/// m = (m - p q^T) + g over `count` columns of some rows; returns whether all fitted. `p` and `q`
/// are those of the last step.
template <typename L, int kRows, typename G>
bool add_gradient(const G* grad, float* memory, std::int64_t columns, const float* p,
                  const float* q, std::int64_t rank, std::int64_t count) {
  bool finite = true;
  for_each_lane<L>(count, [&](std::int64_t j, auto... mask) {
    typename L::Floats left[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = L::load(memory + r * columns + j, mask...);
    for (std::int64_t k = 0; k < rank; ++k) {
      const auto factor = L::load(q + k * columns + j, mask...);
      for (int r = 0; r < kRows; ++r) {
        left[r] = L::fma(L::broadcast(-p[r * rank + k]), factor, left[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      // Times 1 and added in one operation is a plain sum.
      auto sum = L::fma(L::broadcast(1.0F), L::load(grad + r * columns + j, mask...), left[r]);
      if (const auto bad = too_large<L>(sum); __builtin_expect(L::any(bad), 0)) {
        finite = false;
        sum = L::select(bad, at_most<L>(left[r]), sum);
      }
      L::store(memory + r * columns + j, sum, mask...);
    }
  });
  return finite;
}

template <typename L, int kRows, typename G>
bool accumulate_rows(const lowrank::Matrix& matrix, const G* grad, lowrank::Factors last,
                     const float* q, std::int64_t rank, std::int64_t row, float* p) {
  bool finite = true;
  const std::int64_t columns = matrix.columns;
  for (std::int64_t i = 0; i < kRows * rank; ++i) p[row * rank + i] = 0;
  for (std::int64_t j = 0; j < columns; j += lowrank::kPiece) {
    const std::int64_t count = smaller<L>(lowrank::kPiece, columns - j);
    float* const memory = matrix.memory + row * columns + j;
    finite &= add_gradient<L, kRows>(grad + row * columns + j, memory, columns, last.p + row * rank,
                                     last.q + j, rank, count);
    add_all_products<L, kRows>(memory, columns, q + j, count, rank, p + row * rank);
  }
  return finite;
}

template <typename L>
bool accumulate_low_rank(const lowrank::Matrix& matrix, lowrank::Factors last, const float* q,
                         std::int64_t rank, std::int64_t begin, std::int64_t end, float* p) {
  return with_elements<L>(matrix.dtype, matrix.grad, [&](const auto* grad) {
    bool finite = true;
    std::int64_t row = begin;
    for (; row + kRowsTogether<L> <= end; row += kRowsTogether<L>) {
      finite &= accumulate_rows<L, kRowsTogether<L>>(matrix, grad, last, q, rank, row, p);
    }
    for (; row < end; ++row) {
      finite &= accumulate_rows<L, 1>(matrix, grad, last, q, rank, row, p);
    }
    return finite;
  });
}

/// q += m^T p of some rows, over `count` columns.
template <typename L, int kRows>
void add_transposed(const float* rows, std::int64_t columns, const float* p, std::int64_t rank,
                    std::int64_t count, float* q, std::int64_t stride) {
  for_each_lane<L>(count, [&](std::int64_t j, auto... mask) {
    typename L::Floats m[kRows];
    for (int r = 0; r < kRows; ++r) m[r] = L::load(rows + r * columns + j, mask...);
    for (std::int64_t k = 0; k < rank; ++k) {
      auto sum = L::load(q + k * stride + j, mask...);
      for (int r = 0; r < kRows; ++r) sum = L::fma(m[r], L::broadcast(p[r * rank + k]), sum);
      L::store(q + k * stride + j, sum, mask...);
    }
  });
}

template <typename L>
void project_low_rank(const lowrank::Matrix& matrix, const float* p, std::int64_t rank,
                      std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last,
                      float* q, std::int64_t stride) {
  const std::int64_t count = last - first;
  for (std::int64_t k = 0; k < rank; ++k) {
    for (std::int64_t j = 0; j < count; ++j) q[k * stride + j] = 0;
  }
  constexpr int kRows = 4;
  const float* const columns_from = matrix.memory + first;
  std::int64_t row = begin;
  for (; row + kRows <= end; row += kRows) {
    add_transposed<L, kRows>(columns_from + row * matrix.columns, matrix.columns, p + row * rank,
                             rank, count, q, stride);
  }
  for (; row < end; ++row) {
    add_transposed<L, 1>(columns_from + row * matrix.columns, matrix.columns, p + row * rank, rank,
                         count, q, stride);
  }
}

template <typename L, int kRows, typename G>
void expand_rows(G* grad, std::int64_t columns, const float* p, const float* q, std::int64_t rank,
                 std::int64_t count) {
  for_each_lane<L>(count, [&](std::int64_t j, auto... mask) {
    typename L::Floats sum[kRows];
    for (auto& one : sum) one = L::broadcast(0.0F);
    for (std::int64_t k = 0; k < rank; ++k) {
      const auto factor = L::load(q + k * columns + j, mask...);
      for (int r = 0; r < kRows; ++r) {
        sum[r] = L::fma(L::broadcast(p[r * rank + k]), factor, sum[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      L::store(grad + r * columns + j, sum[r], mask...);
    }
  });
}

template <typename L>
void expand_low_rank(const lowrank::Matrix& matrix, lowrank::Factors factors, std::int64_t rank,
                     std::int64_t begin, std::int64_t end) {
  with_elements<L>(matrix.dtype, matrix.grad, [&](auto* grad) {
    constexpr int kRows = 4;
    const std::int64_t columns = matrix.columns;
    for (std::int64_t j = 0; j < columns; j += lowrank::kPiece) {
      const std::int64_t count = smaller<L>(lowrank::kPiece, columns - j);
      std::int64_t row = begin;
      for (; row + kRows <= end; row += kRows) {
        expand_rows<L, kRows>(grad + row * columns + j, columns, factors.p + row * rank,
                              factors.q + j, rank, count);
      }
      for (; row < end; ++row) {
        expand_rows<L, 1>(grad + row * columns + j, columns, factors.p + row * rank, factors.q + j,
                          rank, count);
      }
    }
  });
}

}  // namespace scalecom::kernels::cpu
