#include "scalecom/kernels/sketch.h"

#include <algorithm>
#include <vector>

#include "scalecom/core/hash.h"
#include "scalecom/core/thread_pool.h"

namespace scalecom::kernels::sketch {
namespace {

constexpr std::int64_t kBlock = 16 * 1024;

// The middle one, or the mean of the two in the middle. There are few.
float median(float* values, std::int64_t count) {
  for (std::int64_t i = 1; i < count; ++i) {
    const float value = values[i];
    std::int64_t at = i;
    for (; at > 0 && values[at - 1] > value; --at) values[at] = values[at - 1];
    values[at] = value;
  }
  const float upper = values[count / 2];
  return count % 2 != 0 ? upper : 0.5F * values[count / 2 - 1] + 0.5F * upper;
}

}  // namespace

Hash::Hash(std::uint64_t seed, std::int64_t row) {
  const std::uint64_t own = core::combine(seed, static_cast<std::uint64_t>(row));
  for (std::size_t i = 0; i < coefficients_.size(); ++i) {
    coefficients_[i] = core::combine(own, i) % kPrime;
  }
}

std::uint64_t Hash::at(std::uint64_t element) const {
  const std::uint64_t x = element % kPrime;
  std::uint64_t value = 0;
  for (const std::uint64_t coefficient : coefficients_) {
    value = add_mod(multiply_mod(value, x), coefficient);
  }
  return value;
}

// The first value and its differences, from four values in a row.
Walk::Walk(const Hash& hash, std::uint64_t first) {
  for (std::size_t i = 0; i < differences_.size(); ++i) differences_[i] = hash.at(first + i);
  for (std::size_t order = 1; order < differences_.size(); ++order) {
    for (std::size_t i = differences_.size() - 1; i >= order; --i) {
      differences_[i] = add_mod(differences_[i], kPrime - differences_[i - 1]);
    }
  }
}

void make(std::span<const Part> parts, const Size& size, float* table) {
  core::parallel_for(size.rows, [&](std::int64_t row) {
    float* const counters = table + row * size.columns;
    std::fill_n(counters, size.columns, 0.0F);
    const Hash hash(size.seed, row);
    for (const Part& part : parts) {
      Walk walk(hash, static_cast<std::uint64_t>(part.first));
      for (std::int64_t i = 0; i < part.count; ++i) {
        const std::uint64_t value = walk.next();
        counters[column_of(value, size.columns)] += sign_of(value) * part.values[i];
      }
    }
  });
}

void estimate(const float* table, const Size& size, std::int64_t count, float* estimates) {
  core::parallel_for((count + kBlock - 1) / kBlock, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock;
    const std::int64_t end = std::min(count, begin + kBlock);
    std::vector<Walk> walks;
    for (std::int64_t row = 0; row < size.rows; ++row) {
      walks.emplace_back(Hash(size.seed, row), static_cast<std::uint64_t>(begin));
    }
    std::array<float, kMostRows> counters;
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t row = 0; row < size.rows; ++row) {
        const std::uint64_t value = walks[static_cast<std::size_t>(row)].next();
        counters[static_cast<std::size_t>(row)] =
            sign_of(value) * table[row * size.columns + column_of(value, size.columns)];
      }
      estimates[i] = median(counters.data(), size.rows);
    }
  });
}

}  // namespace scalecom::kernels::sketch
