#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

/// A count sketch: `rows` rows of `columns` counters. In every row an element is added to one
/// counter, with a sign; its estimate is the median over rows of the counters it went to, each with
/// that sign. Sketches are linear: the sum of two is the sketch of the sum.
namespace scalecom::kernels::sketch {

/// 2^31 - 1, a prime: a sum of two residues fits 32 bits and a product 64, so nothing overflows.
constexpr std::uint32_t kPrime = 0x7fffffff;

constexpr std::uint32_t add_mod(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

constexpr std::uint32_t multiply_mod(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * b;
  return add_mod(static_cast<std::uint32_t>(product & kPrime),
                 static_cast<std::uint32_t>(product >> 31));
}

/// A row's hash: polynomials of degree 3 over the integers modulo kPrime with coefficients from a
/// seed, one for every stretch of elements, as a polynomial tells no more than kPrime of them
/// apart. The values at any four elements are independent; the lowest bit is the sign, the others
/// give the column.
class Hash {
 public:
  static constexpr std::uint64_t kStretch = std::uint64_t{1} << 30;

  Hash(std::uint64_t seed, std::int64_t row);
  std::uint32_t at(std::uint64_t element) const;

  /// The values at consecutive elements of one stretch, from `first` on.
  void walk(std::uint64_t first, std::span<std::uint32_t> values) const;

 private:
  using Coefficients = std::array<std::uint32_t, 4>;
  Coefficients coefficients_of(std::uint64_t stretch) const;

  std::uint64_t seed_;
};

/// A polynomial of degree 3 goes from one element to the next by three additions.
class Walk {
 public:
  /// From the polynomial's first four values.
  explicit constexpr Walk(const std::uint32_t* values) {
    for (std::size_t i = 0; i < differences_.size(); ++i) differences_[i] = values[i];
    for (std::size_t order = 1; order < differences_.size(); ++order) {
      for (std::size_t i = differences_.size() - 1; i >= order; --i) {
        differences_[i] = add_mod(differences_[i], kPrime - differences_[i - 1]);
      }
    }
  }

  constexpr std::uint32_t next() {
    const std::uint32_t value = differences_[0];
    for (std::size_t i = 0; i < 3; ++i) {
      differences_[i] = add_mod(differences_[i], differences_[i + 1]);
    }
    return value;
  }

 private:
  std::array<std::uint32_t, 4> differences_{};
};

/// A column has at least 16 of the values that give columns, and at most one more than another.
constexpr std::int64_t kMostColumns = std::int64_t{1} << 26;

/// Where an element goes: twice the column, which is in [0, columns), and one more where its sign
/// is -1.
constexpr std::uint32_t place_of(std::uint32_t hash, std::uint32_t columns) {
  const std::uint64_t column = static_cast<std::uint64_t>(hash >> 1) * columns >> 30;
  return static_cast<std::uint32_t>(column) << 1 | (hash & 1U);
}
constexpr std::uint32_t column_of(std::uint32_t place) {
  return place >> 1;
}
constexpr float with_sign_of(std::uint32_t place, float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ place << 31);
}

/// Of one instruction set, on one thread; every set gives the same.
struct Passes {
  /// Values that a walk is begun with: enough for four of any instruction set's vectors.
  static constexpr std::int64_t kStart = 64;
  /// The places of `count` consecutive elements; `hashes` has those of the first kStart of them,
  /// which say how a polynomial of degree 3 goes on.
  void (*places)(const std::uint32_t* hashes, std::uint32_t columns, std::int64_t count,
                 std::uint32_t* places);
};

struct Size {
  std::int64_t rows = 5;
  std::int64_t columns = 1;  ///< at most kMostColumns
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
