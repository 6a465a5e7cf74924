#include "scalecom/methods/sketched_sgd/bucket.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/kernels/largest.h"
#include "scalecom/kernels/momentum.h"

namespace scalecom::methods::sketched_sgd {
namespace {

namespace elementwise = kernels::elementwise;

// Columns for every value that is kept, where nobody says how many: with 5 rows and 4 candidates a
// step sends 24 numbers for each.
constexpr std::int64_t kColumnsPerKept = 4;

bool all_finite(std::span<const float> numbers) {
  elementwise::Flag flag = 0;
  elementwise::check_finite(numbers.data(), static_cast<std::int64_t>(numbers.size()), &flag, {});
  return flag == 0;
}

}  // namespace

Sizes::Sizes(const layout::Layout& layout, const Options& options) {
  double wanted = 0;
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.dense() || slice.length == 0) {
      dense += slice.length;
      continue;
    }
    elements += slice.length;
    wanted += static_cast<double>(slice.length) / slice.rate;
  }
  if (elements == 0) return;
  constexpr std::int64_t kMostElements = std::numeric_limits<std::uint32_t>::max();
  if (elements > kMostElements) {
    throw core::UsageError(core::concat("[sketched_sgd] a bucket has at most ", kMostElements,
                                        " elements to compress, not ", elements));
  }
  kept = std::clamp<std::int64_t>(std::llround(wanted), 1, elements);
  candidates = std::min(elements, kept * options.candidates);
  sketch.rows = options.rows;
  sketch.columns = options.columns > 0 ? options.columns : kept * kColumnsPerKept;
  sketch.seed = static_cast<std::uint64_t>(options.seed);
  if (sketch.columns < kept) {
    throw core::UsageError(
        core::concat("[sketched_sgd] a sketch of ", sketch.columns, " columns cannot tell the ",
                     kept, " values apart that a bucket of ", elements,
                     " elements keeps; give columns=", kept, " or more, or a higher rate"));
  }
  if (sketch.columns > kernels::sketch::kMostColumns) {
    throw core::UsageError(core::concat("[sketched_sgd] a bucket of ", elements,
                                        " elements asks for a sketch of ", sketch.columns,
                                        " columns, and ", kernels::sketch::kMostColumns,
                                        " are the most; give a higher rate, or columns"));
  }
}

Bucket::Bucket(const layout::Layout& layout, const Options& options, MemoryStore& memories,
               MemoryStore& velocities)
    : sizes_(layout, options),
      momentum_(static_cast<float>(options.momentum)),
      first_(sizes_.first_message()),
      second_(sizes_.candidates),
      estimates_(sizes_.elements),
      positions_(static_cast<std::size_t>(sizes_.candidates)) {
  std::int64_t first = 0;
  for (const layout::Slice& slice : layout.slices()) {
    float* const u = momentum_ > 0 ? velocities.of(slice.name, slice.length) : nullptr;
    if (slice.dense() || slice.length == 0) {
      dense_.add(slice);
      dense_velocities_.push_back({u, slice.length});
      continue;
    }
    parts_.push_back({slice.offset, first, slice.length, memories.of(slice.name, slice.length), u});
    first += slice.length;
  }
}

void Bucket::accumulate(const core::Buffer& grad, float factor, MemoryStore& memories) {
  forget_sent();
  bool finite = true;
  std::vector<kernels::sketch::Part> sketched;
  for (const Part& part : parts_) {
    finite &= add_gradient(grad, part);
    sketched.push_back({part.v, part.first, part.length});
  }
  kernels::sketch::make(sketched, sizes_.sketch, first_.data());
  float* const dense = first_.data() + sizes_.sketch.counters();
  finite &= load_dense(grad, factor, dense);
  dense_.fold(memories, factor, dense, DenseSlices::Order::kOneAfterTheOther);
  first().back() = finite ? 0.0F : std::nanf("");  // and so is the sum, at every rank
}

bool Bucket::add_gradient(const core::Buffer& grad, const Part& part) {
  constexpr std::int64_t kBlock = 16'384;
  const kernels::Tensor tensor{grad.at(part.offset), grad.dtype, part.v, part.length};
  std::atomic<bool> finite{true};
  core::parallel_for((part.length + kBlock - 1) / kBlock, [&](std::int64_t block) {
    const std::int64_t begin = block * kBlock;
    const std::int64_t end = std::min(part.length, begin + kBlock);
    // With beta and decay 1 the memory becomes the sum.
    const bool fine = part.u == nullptr ? kernels::table().accumulate(tensor, {}, begin, end)
                                        : kernels::accumulate_momentum(tensor, part.u, {momentum_},
                                                                       1.0F, begin, end);
    if (!fine) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

// Momentum is linear, so it may come before the mean as well: every rank has its own velocity.
bool Bucket::load_dense(const core::Buffer& grad, float factor, float* dense) {
  if (momentum_ == 0) return dense_.load(grad, factor, dense);
  bool finite = dense_.load(grad, 1.0F, dense);
  for (const DenseVelocity& velocity : dense_velocities_) {
    dense_velocities_before_.insert(dense_velocities_before_.end(), velocity.u,
                                    velocity.u + velocity.length);
    finite &= kernels::apply_momentum(dense, velocity.u, velocity.length, {momentum_}, factor);
    dense += velocity.length;
  }
  return finite;
}

const Bucket::Part& Bucket::part_of(std::int64_t position) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), position,
                       [](std::int64_t at, const Part& part) { return at < part.first; });
  return *(after - 1);
}

bool Bucket::choose() {
  if (!all_finite(first())) return false;
  kernels::sketch::estimate(first_.data(), sizes_.sketch, sizes_.elements, estimates_.data());
  kernels::select_largest(estimates_.data(), sizes_.elements, sizes_.candidates, positions_.data());
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const Part& part = part_of(positions_[i]);
    second()[i] = part.v[positions_[i] - part.first];
  }
  return true;
}

// The candidates that are kept, by position. Among equals the lowest positions.
std::vector<std::size_t> Bucket::largest() const {
  if (positions_.empty()) return {};
  std::vector<std::size_t> order(positions_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto before = [this](std::size_t a, std::size_t b) {
    const float x = std::abs(second_.data()[a]);
    const float y = std::abs(second_.data()[b]);
    return x != y ? x > y : a < b;
  };
  const auto kept = order.begin() + sizes_.kept;
  std::nth_element(order.begin(), kept == order.end() ? kept - 1 : kept, order.end(), before);
  order.erase(kept, order.end());
  std::sort(order.begin(), order.end());
  return order;
}

bool Bucket::finish(const core::Buffer& grad, float factor) {
  if (!all_finite(second())) return false;
  std::vector<std::uint32_t> positions;
  std::vector<float> values;
  for (const std::size_t i : largest()) {
    positions.push_back(positions_[i]);
    values.push_back(second()[i] * factor);
  }
  std::size_t begin = 0;
  for (const Part& part : parts_) {
    const std::size_t first = begin;
    for (; begin < positions.size() && positions[begin] < part.first + part.length; ++begin) {
      positions[begin] -= static_cast<std::uint32_t>(part.first);
      float* const v = part.v + positions[begin];
      float* const u = part.u != nullptr ? part.u + positions[begin] : nullptr;
      sent_.push_back({v, u, *v, u != nullptr ? *u : 0.0F});
      *v = 0;
      if (u != nullptr) *u = 0;
    }
    kernels::table().zero_and_put({grad.at(part.offset), grad.dtype, nullptr, part.length}, 0,
                                  part.length, static_cast<std::int64_t>(begin - first),
                                  positions.data() + first, values.data() + first);
  }
  dense_.store(first_.data() + sizes_.sketch.counters(), grad);
  return true;
}

void Bucket::put_back() {
  for (const Sent& one : sent_) {
    *one.v = one.v_before;
    if (one.u != nullptr) *one.u = one.u_before;
  }
  if (!dense_velocities_before_.empty()) {
    const float* before = dense_velocities_before_.data();
    for (const DenseVelocity& velocity : dense_velocities_) {
      std::copy_n(before, velocity.length, velocity.u);
      before += velocity.length;
    }
  }
  forget_sent();
}

void Bucket::forget_sent() {
  sent_.clear();
  dense_velocities_before_.clear();
}

}  // namespace scalecom::methods::sketched_sgd
