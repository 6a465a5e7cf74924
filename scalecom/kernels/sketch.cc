#include "scalecom/kernels/sketch.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "scalecom/core/hash.h"
#include "scalecom/core/thread_pool.h"

namespace scalecom::kernels::sketch {
namespace {

constexpr std::int64_t kBlock = 16 * 1024;
// Elements that are estimated together, row after row, so that medians are taken in vectors.
constexpr std::int64_t kTogether = 256;

float with_sign(std::uint64_t hash, float value) {
  const auto sign = static_cast<std::uint32_t>(hash & 1U) << 31;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ sign);
}

using Row = std::array<float, kTogether>;

// Of five rows, by minima and maxima alone, so that it becomes vectors.
void medians_of_five(std::vector<Row>& rows, std::int64_t count, float* medians) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    float a = rows[0][i];
    float b = rows[1][i];
    float d = rows[3][i];
    float e = rows[4][i];
    // The least and the greatest of two pairs cannot be in the middle.
    const float low = std::max(std::min(a, b), std::min(d, e));
    const float high = std::min(std::max(a, b), std::max(d, e));
    const float c = rows[2][i];
    medians[i] = std::max(std::min(low, high), std::min(std::max(low, high), c));
  }
}

// The middle one, or the mean of the two in the middle.
float median(std::vector<float>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle]
                                : 0.5F * values[middle - 1] + 0.5F * values[middle];
}

void medians(std::vector<Row>& rows, std::int64_t count, float* out) {
  if (rows.size() == 5) return medians_of_five(rows, count, out);
  std::vector<float> values(rows.size());
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      values[row] = rows[row][static_cast<std::size_t>(i)];
    }
    out[i] = median(values);
  }
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
        counters[column_of(value, size.columns)] += with_sign(value, part.values[i]);
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
    std::vector<Row> rows(walks.size());
    for (std::int64_t first = begin; first < end; first += kTogether) {
      const std::int64_t together = std::min(kTogether, end - first);
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const float* const counters = table + static_cast<std::int64_t>(row) * size.columns;
        for (std::size_t i = 0; i < static_cast<std::size_t>(together); ++i) {
          const std::uint64_t value = walks[row].next();
          rows[row][i] = with_sign(value, counters[column_of(value, size.columns)]);
        }
      }
      medians(rows, together, estimates + first);
    }
  });
}

}  // namespace scalecom::kernels::sketch
