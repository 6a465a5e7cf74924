#pragma once

#include <cmath>
#include <cstdint>

#include "scalecom/core/dtype.h"

namespace comparison::operations {

/// Operations that this thread's counting numbers have done since it began.
std::int64_t& done();

/// A number that counts what is done with it. An addition, a subtraction, a multiplication, a
/// division, a comparison, an absolute value, a bitwise operation, a rounding and a look at whether
/// it is finite are one operation each, and a fused multiply-add is two. Reading, writing and
/// moving are none.
template <typename T>
class Counting {
 public:
  Counting() = default;
  Counting(T value) : value_(value) {}  // so that a statement reads as if T were its type

  /// The number itself: for results, not for computing with.
  T value() const { return value_; }

  friend Counting operator+(Counting a, Counting b) { return counted<1>(a.value_ + b.value_); }
  friend Counting operator-(Counting a, Counting b) { return counted<1>(a.value_ - b.value_); }
  friend Counting operator*(Counting a, Counting b) { return counted<1>(a.value_ * b.value_); }
  friend Counting operator/(Counting a, Counting b) { return counted<1>(a.value_ / b.value_); }
  friend Counting operator-(Counting a) { return counted<1>(-a.value_); }
  friend Counting operator^(Counting a, Counting b) { return counted<1>(a.value_ ^ b.value_); }
  friend Counting operator>>(Counting a, int places) { return counted<1>(a.value_ >> places); }
  friend bool operator<(Counting a, Counting b) { return counted<1>(a.value_ < b.value_); }
  friend bool operator>(Counting a, Counting b) { return counted<1>(a.value_ > b.value_); }
  friend bool operator>=(Counting a, Counting b) { return counted<1>(a.value_ >= b.value_); }

  friend Counting abs(Counting a) { return counted<1>(std::abs(a.value_)); }
  friend bool is_finite(Counting a) { return counted<1>(std::isfinite(a.value_)); }
  friend Counting fma(Counting a, Counting b, Counting c) {
    return counted<2>(std::fma(a.value_, b.value_, c.value_));
  }
  /// As it arrives after crossing the wire as `type`.
  friend Counting rounded(scalecom::core::DType type, Counting a) {
    if (type == scalecom::core::DType::kFloat32) return a;
    return counted<1>(scalecom::core::round_to(type, a.value_));
  }

 private:
  template <int kOperations, typename Result>
  static Result counted(Result result) {
    done() += kOperations;
    return result;
  }

  T value_{};
};

using Number = Counting<float>;
using Bits = Counting<std::uint64_t>;

}  // namespace comparison::operations
