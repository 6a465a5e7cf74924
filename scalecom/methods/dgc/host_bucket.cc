#include "scalecom/methods/dgc/host_bucket.h"

#include <atomic>
#include <cmath>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/momentum.h"
#include "scalecom/methods/dgc/dgc.h"
#include "scalecom/methods/dgc/threshold.h"
#include "scalecom/methods/sparse/blocks.h"

namespace scalecom::methods::dgc {

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

// What brings the norm of the bucket's gradient down to clip / sqrt(n).
float HostBucket::clipping() const {
  if (options_.clip == 0) return 1.0F;
  constexpr std::int64_t kBlock = 64 * 1024;
  const std::int64_t blocks = (grad_.elements + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  core::parallel_for(blocks, [&](std::int64_t block) {
    sums[static_cast<std::size_t>(block)] = kernels::sum_of_squares(
        grad_.data, grad_.dtype, block * kBlock, std::min(grad_.elements, (block + 1) * kBlock));
  });
  double sum = 0;
  for (const double one : sums) sum += one;
  const double most = options_.clip / std::sqrt(static_cast<double>(ranks_));
  const double norm = std::sqrt(sum);
  // A norm that is not finite clips nothing: the entry that made it so is refused by itself.
  return norm > most && std::isfinite(norm) ? static_cast<float>(most / norm) : 1.0F;
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
    const std::uint64_t draw =
        core::combine(core::hash(part.name), static_cast<std::uint64_t>(step_));
    const std::vector<std::uint32_t> found = select_by_sample(
        parts_[i].memory, part.length, std::min(part.rate, most_rate), part.keep(most_rate), draw);
    for (const std::uint32_t position : found) {
      taken_.values.push_back(std::exchange(parts_[i].memory[position], 0.0F));
      taken_velocities_.push_back(std::exchange(parts_[i].velocity[position], 0.0F));
    }
    taken_.positions.insert(taken_.positions.end(), found.begin(), found.end());
    taken_.runs.push_back({part.length, static_cast<std::int64_t>(found.size())});
  }
}

// First how many entries each rank has, then the entries.
void HostBucket::exchange(comm::Communicator& communicator) {
  if (parts_.empty()) return;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<std::uint32_t> counts(parts_.size() * ranks);
  std::vector<std::uint32_t> mine;
  for (const wire::Run& run : taken_.runs) mine.push_back(static_cast<std::uint32_t>(run.count));
  communicator.all_gather(std::as_bytes(std::span(mine)),
                          std::as_writable_bytes(std::span(counts)));
  arrived_.clear();
  message_bytes_.clear();
  std::int64_t all = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<wire::Run> runs = taken_.runs;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].count = counts[rank * runs.size() + i];
      if (runs[i].count > runs[i].length) {
        throw core::PeerError(core::concat("[dgc] rank ", rank, " says it sends ", runs[i].count,
                                           " entries of '", shape_.parts[i].name, "', which has ",
                                           runs[i].length));
      }
    }
    arrived_.emplace_back(std::move(runs));
    message_bytes_.push_back(arrived_.back().bytes());
    all += message_bytes_.back();
  }
  std::vector<std::byte> own(static_cast<std::size_t>(taken_.bytes()));
  taken_.pack(own);
  messages_.resize(static_cast<std::size_t>(all));
  communicator.all_gather(own, messages_, message_bytes_);
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
