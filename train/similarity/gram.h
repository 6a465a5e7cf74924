#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace train::similarity {

/// The products of each two of some vectors, which come in pieces: angles and norms follow.
class Gram {
 public:
  explicit Gram(std::size_t vectors) : vectors_(vectors), sums_(vectors * vectors) {}

  std::size_t vectors() const { return vectors_; }

  /// The next piece of every vector, all of one length, one after the other.
  void add(std::span<const float> pieces);
  Gram& operator+=(const Gram& other);

  double norm(std::size_t vector) const;
  /// 0 where one of the two is all zero.
  double cosine(std::size_t a, std::size_t b) const;

  /// 1 - cosine over the pairs of different vectors that are not zero: 0 for vectors that point the
  /// same way, 1 for those that have nothing to do with one another.
  struct Distances {
    double mean = 0;
    double least = 0;
    double most = 0;
  };
  /// Nothing where there is no such pair.
  std::optional<Distances> distances() const;

  /// The sums as they are, to be carried from one rank to another.
  std::span<double> sums() { return sums_; }

 private:
  double product(std::size_t a, std::size_t b) const {
    return sums_[a < b ? b * vectors_ + a : a * vectors_ + b];
  }

  std::size_t vectors_;
  std::vector<double> sums_;  // [a][b] for b <= a
};

}  // namespace train::similarity
