#pragma once

#include "scalecom/kernels/cpu/lanes.h"

/// AdaComp's pass over one bin, which stays in the nearest cache between its two halves.
namespace scalecom::kernels::cpu {

/// No magnitude's bits are less, so that an entry with this key is never sent.
constexpr int kNever = -1;

/// One vector of a bin: m becomes G. Gives the keys of |H|, kNever where G is 0.
template <typename L>
class BinVector {
 public:
  BinVector(typename L::Floats m, typename L::Floats g) {
    const auto one = L::broadcast(1.0F);
    bad_ = not_finite<L>(L::fma(one, L::fma(one, m, g), g));
    const auto kept = L::select(bad_, L::broadcast(0.0F), g);
    sum_ = L::fma(one, m, kept);
    const auto zero = L::broadcast(0);
    const auto h = key_of<L>(L::fma(one, sum_, kept));
    keys_ = L::select(L::greater(key_of<L>(sum_), zero), h, L::broadcast(kNever));
  }

  typename L::Floats sum() const { return sum_; }
  typename L::Ints keys() const { return keys_; }
  typename L::Mask bad() const { return bad_; }

 private:
  typename L::Floats sum_;
  typename L::Ints keys_;
  typename L::Mask bad_;
};

template <typename L>
typename L::Ints larger(typename L::Ints a, typename L::Ints b) {
  return L::select(L::greater(a, b), a, b);
}

template <typename L>
std::int64_t find_in_bin(const Tensor& tensor, std::int64_t begin, std::int64_t end,
                         bins::Found& found) {
  constexpr std::int64_t kWidth = L::kWidth;
  auto largest = L::broadcast(0);
  bool finite = true;
  float* const keys = reinterpret_cast<float*>(found.keys);
  with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    std::int64_t i = begin;
    for (; i + kWidth <= end; i += kWidth) {
      const BinVector<L> vector(L::load(tensor.memory + i), L::load(grad + i));
      finite = finite && !L::any(vector.bad());
      L::store(tensor.memory + i, vector.sum());
      L::store(keys + (i - begin), L::floats(vector.keys()));
      largest = larger<L>(largest, key_of<L>(vector.sum()));
    }
    if (i == end) return;
    const auto lanes = L::lanes(0, end - i);
    const BinVector<L> vector(L::load(tensor.memory + i, lanes), L::load(grad + i, lanes));
    finite = finite && !L::any(vector.bad());
    L::store(tensor.memory + i, vector.sum(), lanes);
    L::store(keys + (i - begin), L::floats(vector.keys()), lanes);
    largest = larger<L>(largest, key_of<L>(vector.sum()));
  });
  found.finite = found.finite && finite;
  const int reached = L::largest(largest);
  found.largest = __builtin_bit_cast(float, reached);

  const auto below = L::broadcast(reached - 1);
  std::int64_t count = 0;
  const std::int64_t length = end - begin;
  for (std::int64_t i = 0; i < length; i += kWidth) {
    const std::int64_t n = smaller<L>(kWidth, length - i);
    const auto some = L::bits(L::load(keys + i, L::lanes(0, n)));
    if (!L::any(L::greater(some, below, L::lanes(0, n)))) continue;
    for (std::int64_t k = i; k < i + n; ++k) {
      // Written in any case, and kept or not: a branch here would often be guessed wrongly.
      found.positions[count] = static_cast<std::uint32_t>(begin + k);
      count += found.keys[k] >= reached ? 1 : 0;
    }
  }
  return count;
}

}  // namespace scalecom::kernels::cpu
