#include "scalecom/methods/dgc/host_bucket.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "scalecom/kernels/largest.h"
#include "scalecom/kernels/momentum.h"
#include "scalecom/methods/dgc/dgc.h"
#include "scalecom/methods/dgc/threshold.h"
#include "scalecom/methods/sparse/blocks.h"

namespace scalecom::methods::dgc {
namespace {

class HostNumbers final : public Numbers {
 public:
  HostNumbers(const float* numbers, std::int64_t length) : numbers_(numbers), length_(length) {}

  std::int64_t length() const override { return length_; }
  std::int32_t key_reached(std::int64_t first, std::int64_t stride, std::int64_t keep) override {
    return kernels::key_reached(numbers_, length_, first, stride, keep);
  }
  std::vector<std::uint32_t> positions_from(std::int32_t least) override {
    return kernels::positions_from(numbers_, length_, least);
  }
  std::vector<std::uint32_t> keep_largest(const std::vector<std::uint32_t>& candidates,
                                          std::int64_t keep) override {
    return kernels::keep_largest(numbers_, candidates, keep);
  }

 private:
  const float* numbers_;
  std::int64_t length_;
};

}  // namespace

HostBucket::HostBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories)
    : sparse::HostBucket(layout), options_(options) {
  for (const sparse::Shape::Part& part : shape_.parts) {
    parts_.push_back(
        {memories.of(part.name, part.length), memories.of(velocity_name(part.name), part.length)});
  }
  for (const sparse::Shape::DensePart& part : shape_.dense_parts) {
    dense_velocities_.push_back(memories.of(velocity_name(part.name), part.length));
  }
}

void HostBucket::compress() {
  const float scale = clipping();
  bool finite = accumulate(scale);
  finite &= accumulate_dense(scale);
  take_largest();
  set_flag(finite);
}

float HostBucket::clipping() const {
  if (options_.clip == 0) return 1.0F;
  constexpr std::int64_t kBlock = 65'536;
  const std::int64_t blocks = (grad_.elements + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  core::parallel_for(blocks, [&](std::int64_t block) {
    sums[static_cast<std::size_t>(block)] = kernels::sum_of_squares(
        grad_.data, grad_.dtype, block * kBlock, std::min(grad_.elements, (block + 1) * kBlock));
  });
  return options_.clipping(std::accumulate(sums.begin(), sums.end(), 0.0), ranks_);
}

bool HostBucket::accumulate(float scale) {
  std::atomic<bool> finite{true};
  sparse::for_each_block(shape_, [&](std::size_t part, std::int64_t begin, std::int64_t end) {
    const auto [memory, velocity] = parts_[part];
    const kernels::Tensor tensor = sparse::tensor_of(shape_.parts[part], grad_, memory);
    if (!kernels::accumulate_momentum(tensor, velocity, options_.motion(), scale, begin, end)) {
      finite.store(false, std::memory_order_relaxed);
    }
  });
  return finite;
}

// Momentum is linear, so it may come before the mean as well: every rank has its own velocity.
bool HostBucket::accumulate_dense(float scale) {
  bool finite = load_dense(scale);
  velocities_before_.clear();
  for (std::size_t i = 0; i < dense_velocities_.size(); ++i) {
    const sparse::Shape::DensePart& part = shape_.dense_parts[i];
    float* const velocity = dense_velocities_[i];
    velocities_before_.insert(velocities_before_.end(), velocity, velocity + part.length);
    finite &= kernels::apply_momentum(rest().data() + part.place, velocity, part.length,
                                      options_.motion(), mean_factor());
  }
  return finite;
}

void HostBucket::take_largest() {
  const double most_rate = options_.most_rate(step_);
  taken_ = {};
  taken_velocities_.clear();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const sparse::Shape::Part& part = shape_.parts[i];
    HostNumbers numbers(parts_[i].memory, part.length);
    const std::vector<std::uint32_t> found =
        select_by_sample(numbers, std::min(part.rate, most_rate), part.keep(most_rate),
                         sample_draw(part.name, step_));
    for (const std::uint32_t position : found) {
      taken_.values.push_back(std::exchange(parts_[i].memory[position], 0.0F));
      taken_velocities_.push_back(std::exchange(parts_[i].velocity[position], 0.0F));
    }
    taken_.positions.insert(taken_.positions.end(), found.begin(), found.end());
    taken_.runs.push_back({part.length, static_cast<std::int64_t>(found.size())});
  }
}

void HostBucket::exchange(comm::Communicator& communicator) {
  if (parts_.empty()) return;
  arrived_.clear();
  for (std::vector<wire::Run>& runs : exchange_counts(communicator, taken_.runs)) {
    arrived_.emplace_back(std::move(runs));
  }
  std::vector<std::byte> own(static_cast<std::size_t>(taken_.bytes()));
  taken_.pack(own);
  messages_.resize(static_cast<std::size_t>(all_bytes()));
  communicator.all_gather(own, messages_, message_bytes());
  std::size_t begin = 0;
  for (sparse::Items& items : arrived_) {
    const auto bytes = static_cast<std::size_t>(items.bytes());
    items.unpack(std::span(messages_).subspan(begin, bytes));
    begin += bytes;
  }
}

bool HostBucket::put_items() {
  return scatter(shape_, grad_, arrived_, mean_factor());
}

void HostBucket::put_back_items() {
  const std::vector<kernels::Given> taken = taken_.by_part();
  const float* velocity = taken_velocities_.data();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (std::int64_t item = 0; item < taken[i].count; ++item) {
      parts_[i].memory[taken[i].positions[item]] = taken[i].values[item];
      parts_[i].velocity[taken[i].positions[item]] = *velocity++;
    }
  }
  for (std::size_t i = 0; i < dense_velocities_.size(); ++i) {
    const sparse::Shape::DensePart& part = shape_.dense_parts[i];
    std::copy_n(velocities_before_.data() + part.place, part.length, dense_velocities_[i]);
  }
}

}  // namespace scalecom::methods::dgc
