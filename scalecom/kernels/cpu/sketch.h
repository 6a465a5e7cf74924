#pragma once

#include "scalecom/kernels/cpu/lanes.h"

/// Every lane walks a polynomial of degree 3 in steps of a vector's length, which takes three
/// additions as a walk from one element to the next does.
namespace scalecom::kernels::cpu {

/// Under the prime. What was not over it already is greater, as an unsigned number, for having the
/// prime taken off.
template <typename L>
typename L::Ints sum_mod(typename L::Ints a, typename L::Ints b) {
  const auto sum = L::plus(a, b);
  return L::smaller(sum, L::minus(sum, L::broadcast(static_cast<int>(sketch::kPrime))));
}

template <typename L>
typename L::Ints difference_mod(typename L::Ints a, typename L::Ints b) {
  const auto difference = L::minus(a, b);
  return L::smaller(difference,
                    L::plus(difference, L::broadcast(static_cast<int>(sketch::kPrime))));
}

/// sketch::place_of. The bits that give the column come to the upper end, so that the column is the
/// upper half of a product.
template <typename L>
typename L::Ints place_of(typename L::Ints hash, typename L::Ints columns) {
  const auto even = L::both(hash, L::broadcast(~1));
  const auto column = L::upper_product(L::plus(even, even), columns);
  return L::either(L::plus(column, column), L::both(hash, L::broadcast(1)));
}

template <typename L>
void find_places(const std::uint32_t* hashes, std::uint32_t columns, std::int64_t count,
                 std::uint32_t* places) {
  static_assert(4 * L::kWidth <= sketch::Passes::kStart);
  const auto* const start = reinterpret_cast<const float*>(hashes);
  typename L::Ints differences[4];
  for (int i = 0; i < 4; ++i) differences[i] = L::bits(L::load(start + i * L::kWidth));
  for (int order = 1; order < 4; ++order) {
    for (int i = 3; i >= order; --i) {
      differences[i] = difference_mod<L>(differences[i], differences[i - 1]);
    }
  }
  const auto all_columns = L::broadcast(static_cast<int>(columns));
  auto* const out = reinterpret_cast<float*>(places);
  for (std::int64_t i = 0; i < count; i += L::kWidth) {
    const auto place = L::floats(place_of<L>(differences[0], all_columns));
    if (count - i >= L::kWidth) {
      L::store(out + i, place);
    } else {
      L::store(out + i, place, L::lanes(0, count - i));
    }
    for (int d = 0; d < 3; ++d) differences[d] = sum_mod<L>(differences[d], differences[d + 1]);
  }
}

}  // namespace scalecom::kernels::cpu
