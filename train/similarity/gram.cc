#include "train/similarity/gram.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace train::similarity {
namespace {

double dot(const float* a, const float* b, std::size_t length) {
  // Apart, so that the additions need not wait for one another.
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= length; i += kSums) {
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += static_cast<double>(a[i + s]) * b[i + s];
  }
  for (; i < length; ++i) sums[i % kSums] += static_cast<double>(a[i]) * b[i];
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

}  // namespace

void Gram::add(std::span<const float> pieces) {
  // Pieces short enough to stay in the cache while each meets all others.
  constexpr std::size_t kBlock = 4096;
  const std::size_t length = vectors_ == 0 ? 0 : pieces.size() / vectors_;
  for (std::size_t first = 0; first < length; first += kBlock) {
    const std::size_t count = std::min(kBlock, length - first);
    const float* const block = pieces.data() + first;
    for (std::size_t a = 0; a < vectors_; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        sums_[a * vectors_ + b] += dot(block + a * length, block + b * length, count);
      }
    }
  }
}

Gram& Gram::operator+=(const Gram& other) {
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
  return *this;
}

double Gram::norm(std::size_t vector) const {
  return std::sqrt(product(vector, vector));
}

double Gram::cosine(std::size_t a, std::size_t b) const {
  const double length = norm(a) * norm(b);
  return length > 0 ? product(a, b) / length : 0;
}

std::optional<Gram::Distances> Gram::distances() const {
  Distances distances{0, 2, 0};
  std::size_t pairs = 0;
  for (std::size_t a = 0; a < vectors_; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (norm(a) == 0 || norm(b) == 0) continue;
      const double distance = 1 - cosine(a, b);
      distances.mean += distance;
      distances.least = std::min(distances.least, distance);
      distances.most = std::max(distances.most, distance);
      ++pairs;
    }
  }
  if (pairs == 0) return std::nullopt;
  distances.mean /= static_cast<double>(pairs);
  return distances;
}

}  // namespace train::similarity
