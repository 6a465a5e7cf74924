#include "scalecom/kernels/sketch.h"

#include <algorithm>
#include <vector>

#include "scalecom/core/hash.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::sketch {
namespace {

// Elements whose places are found together. They divide a stretch; the places stay in the nearest
// cache, and the start of a walk costs little beside its length.
constexpr std::int64_t kTogether = 4096;
static_assert(Hash::kStretch % kTogether == 0);

using Places = std::array<std::uint32_t, kTogether>;
using Row = std::array<float, kTogether>;

std::uint32_t value_at(std::span<const std::uint32_t> coefficients, std::uint64_t x) {
  std::uint32_t value = 0;
  for (const std::uint32_t coefficient : coefficients) {
    value = add_mod(multiply_mod(value, static_cast<std::uint32_t>(x)), coefficient);
  }
  return value;
}

// Of elements that do not cross a multiple of kTogether.
void find_places(const Hash& hash, std::int64_t first, std::int64_t count, std::int64_t columns,
                 Places& places) {
  std::array<std::uint32_t, Passes::kStart> start;
  hash.walk(static_cast<std::uint64_t>(first), start);
  table().sketch.places(start.data(), static_cast<std::uint32_t>(columns), count, places.data());
}

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

Hash::Hash(std::uint64_t seed, std::int64_t row)
    : seed_(core::combine(seed, static_cast<std::uint64_t>(row))) {}

Hash::Coefficients Hash::coefficients_of(std::uint64_t stretch) const {
  const std::uint64_t own = core::combine(seed_, stretch);
  Coefficients coefficients{};
  for (std::size_t i = 0; i < coefficients.size(); ++i) {
    coefficients[i] = static_cast<std::uint32_t>(core::combine(own, i) % kPrime);
  }
  return coefficients;
}

std::uint32_t Hash::at(std::uint64_t element) const {
  return value_at(coefficients_of(element / kStretch), element % kStretch);
}

void Hash::walk(std::uint64_t first, std::span<std::uint32_t> values) const {
  const Coefficients coefficients = coefficients_of(first / kStretch);
  std::array<std::uint32_t, 4> start{};
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = value_at(coefficients, first % kStretch + i);
  }
  Walk walk(start.data());
  for (std::uint32_t& value : values) value = walk.next();
}

void make(std::span<const Part> parts, const Size& size, float* table) {
  core::parallel_for(size.rows, [&](std::int64_t row) {
    float* const counters = table + row * size.columns;
    std::fill_n(counters, size.columns, 0.0F);
    const Hash hash(size.seed, row);
    Places places;
    for (const Part& part : parts) {
      std::int64_t done = 0;
      while (done < part.count) {
        const std::int64_t first = part.first + done;
        const std::int64_t together = std::min(part.count - done, kTogether - first % kTogether);
        find_places(hash, first, together, size.columns, places);
        const float* const values = part.values + done;
        for (std::int64_t i = 0; i < together; ++i) {
          const std::uint32_t place = places[static_cast<std::size_t>(i)];
          counters[column_of(place)] += with_sign_of(place, values[i]);
        }
        done += together;
      }
    }
  });
}

void estimate(const float* table, const Size& size, std::int64_t count, float* estimates) {
  core::parallel_for((count + kTogether - 1) / kTogether, [&](std::int64_t block) {
    const std::int64_t first = block * kTogether;
    const std::int64_t together = std::min(kTogether, count - first);
    std::vector<Row> rows(static_cast<std::size_t>(size.rows));
    Places places;
    for (std::int64_t row = 0; row < size.rows; ++row) {
      const float* const counters = table + row * size.columns;
      Row& votes = rows[static_cast<std::size_t>(row)];
      find_places(Hash(size.seed, row), first, together, size.columns, places);
      for (std::size_t i = 0; i < static_cast<std::size_t>(together); ++i) {
        votes[i] = with_sign_of(places[i], counters[column_of(places[i])]);
      }
    }
    medians(rows, together, estimates + first);
  });
}

}  // namespace scalecom::kernels::sketch
