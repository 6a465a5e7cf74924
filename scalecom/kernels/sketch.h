#pragma once

#include <array>
#include <cstdint>
#include <span>

/// A count sketch: `rows` rows of `columns` counters. In every row an element is added to one
/// counter, with a sign; its estimate is the median over rows of the counters it went to, each with
/// that sign. Sketches are linear: the sum of two is the sketch of the sum.
namespace scalecom::kernels::sketch {

/// 2^61 - 1, a prime: products are taken in 128 bits and folded, so nothing overflows.
constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

constexpr std::uint64_t add_mod(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;  // under 2^62
  return sum >= kPrime ? sum - kPrime : sum;
}

constexpr std::uint64_t multiply_mod(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return add_mod(static_cast<std::uint64_t>(product & kPrime),
                 static_cast<std::uint64_t>(product >> 61));
}

/// A row's hash: a polynomial of degree 3 over the integers modulo kPrime with coefficients from a
/// seed. Its values at any four elements are independent; the lowest bit is the sign, the others
/// give the column.
class Hash {
 public:
  Hash(std::uint64_t seed, std::int64_t row);
  std::uint64_t at(std::uint64_t element) const;

 private:
  friend class Walk;
  std::array<std::uint64_t, 4> coefficients_{};
};

/// The values of a hash at consecutive elements. A polynomial of degree 3 goes from one to the next
/// by three additions.
class Walk {
 public:
  Walk(const Hash& hash, std::uint64_t first);

  std::uint64_t next() {
    const std::uint64_t value = differences_[0];
    differences_[0] = add_mod(differences_[0], differences_[1]);
    differences_[1] = add_mod(differences_[1], differences_[2]);
    differences_[2] = add_mod(differences_[2], differences_[3]);
    return value;
  }

 private:
  std::array<std::uint64_t, 4> differences_{};
};

constexpr float sign_of(std::uint64_t hash) {
  return (hash & 1U) != 0 ? -1.0F : 1.0F;
}
/// In [0, columns).
constexpr std::int64_t column_of(std::uint64_t hash, std::int64_t columns) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>(
      static_cast<Wide>(hash >> 1) * static_cast<std::uint64_t>(columns) >> 60);
}

struct Size {
  std::int64_t rows = 5;
  std::int64_t columns = 1;
  std::uint64_t seed = 0;

  std::int64_t counters() const { return rows * columns; }
};

/// Of rows: an estimate sorts as many numbers.
constexpr std::int64_t kMostRows = 63;

/// Consecutive elements of what is sketched, numbered from `first` on.
struct Part {
  const float* values = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// `table` becomes the sketch of all parts, row after row; every row on one thread, in the order of
/// the elements.
void make(std::span<const Part> parts, const Size& size, float* table);

/// The estimates of elements [0, count), on the pool's threads.
void estimate(const float* table, const Size& size, std::int64_t count, float* estimates);

}  // namespace scalecom::kernels::sketch
