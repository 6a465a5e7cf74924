#include "scalecom/methods/dgc/cuda_bucket.h"

#include <algorithm>
#include <numeric>

#include "scalecom/kernels/cuda/largest.h"
#include "scalecom/kernels/cuda/momentum.h"
#include "scalecom/kernels/elementwise.h"
#include "scalecom/kernels/largest.h"
#include "scalecom/methods/dgc/dgc.h"
#include "scalecom/methods/dgc/packed_sizes.h"
#include "scalecom/methods/dgc/threshold.h"
#include "scalecom/methods/sparse/cuda/gathered_mean.h"
#include "scalecom/methods/sparse/items.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::methods::dgc {
namespace {

namespace elementwise = kernels::elementwise;
namespace kernels_cuda = kernels::cuda;
using sparse::Shape;

template <typename T>
std::int64_t bytes_of(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(T));
}

template <typename T>
std::vector<T> download(const T* d_from, std::int64_t count, const core::Stream& stream) {
  std::vector<T> here(static_cast<std::size_t>(count));
  core::cuda::copy(here.data(), d_from, bytes_of<T>(count), stream);
  core::cuda::synchronize(stream);
  return here;
}

// Pageable memory is read before the copy returns.
template <typename T>
void upload(const std::vector<T>& from, T* d_to, const core::Stream& stream) {
  core::cuda::copy(d_to, from.data(), bytes_of<T>(static_cast<std::int64_t>(from.size())), stream);
}

template <typename T>
T* room_for(core::Array<T>& array, core::Device device, std::int64_t count) {
  if (array.size() < count) array = core::Array<T>(device, count);
  return array.data();
}

// An array on the device, of which the host looks at samples, counts and candidates.
class DeviceNumbers final : public Numbers {
 public:
  struct Scratch {
    core::Array<float> values;
    core::Array<std::uint32_t> counts;
    core::Array<std::uint32_t> positions;
  };

  DeviceNumbers(const float* d_numbers, std::int64_t length, Scratch& scratch,
                const core::Stream& stream)
      : d_numbers_(d_numbers), length_(length), scratch_(scratch), stream_(stream) {}

  std::int64_t length() const override { return length_; }

  std::int32_t key_reached(std::int64_t first, std::int64_t stride, std::int64_t keep) override {
    const std::int64_t count = (length_ - first + stride - 1) / stride;
    float* const d_sample = room_for(scratch_.values, stream_.device(), count);
    kernels_cuda::gather_strided(d_numbers_, first, stride, count, d_sample, stream_);
    const std::vector<float> sample = download(d_sample, count, stream_);
    return kernels::key_reached(sample.data(), count, 0, 1, keep);
  }

  std::vector<std::uint32_t> positions_from(std::int32_t least) override {
    const std::int64_t tiles =
        (length_ + kernels_cuda::kCountedTogether - 1) / kernels_cuda::kCountedTogether;
    std::uint32_t* const d_counts = room_for(scratch_.counts, stream_.device(), tiles);
    kernels_cuda::count_from(d_numbers_, length_, least, d_counts, stream_);
    const std::vector<std::uint32_t> counts = download(d_counts, tiles, stream_);
    std::vector<std::uint32_t> starts(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0U);
    const std::int64_t total = std::int64_t{starts.back()} + counts.back();
    std::uint32_t* const d_positions = room_for(scratch_.positions, stream_.device(), total);
    upload(starts, d_counts, stream_);
    kernels_cuda::write_positions_from(d_numbers_, length_, least, d_counts, d_positions, stream_);
    return download(d_positions, total, stream_);
  }

  std::vector<std::uint32_t> keep_largest(const std::vector<std::uint32_t>& candidates,
                                          std::int64_t keep) override {
    const auto count = static_cast<std::int64_t>(candidates.size());
    std::uint32_t* const d_positions = room_for(scratch_.positions, stream_.device(), count);
    float* const d_values = room_for(scratch_.values, stream_.device(), count);
    upload(candidates, d_positions, stream_);
    kernels_cuda::gather(d_numbers_, d_positions, count, d_values, stream_);
    const std::vector<float> values = download(d_values, count, stream_);
    std::vector<std::uint32_t> kept(static_cast<std::size_t>(keep));
    kernels::select_largest(values.data(), count, keep, kept.data());
    for (std::uint32_t& index : kept) index = candidates[index];
    return kept;
  }

 private:
  const float* d_numbers_;
  std::int64_t length_;
  Scratch& scratch_;
  const core::Stream& stream_;
};

class CudaBucket final : public sparse::Bucket, public PackedSizes {
 public:
  CudaBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories);

  void reserve(core::DType dtype, int /*ranks*/, const core::Stream& /*stream*/) override {
    mean_.reserve(dtype);
  }
  void compress() override;
  void exchange(comm::Communicator& communicator) override;
  void finish() override;
  bool was_sent() override { return mean_.was_sent(stream_); }
  void put_back() override { put_back_where(mean_.d_sent()); }
  void forget_sent() override {
    if (stream_.device().is_cuda()) mean_.forget_sent(stream_);
  }
  std::span<float> rest() override { return rest_.span(); }

 private:
  struct Part {
    float* d_memory;
    float* d_velocity;
  };

  float clipping();
  void accumulate(float scale);
  void accumulate_dense(float scale);
  void take_largest();
  std::span<const sparse::cuda::Message> place_messages();
  void put_back_where(std::int32_t* d_condition);
  float* d_flag() { return rest_.data() + shape_.dense_elements; }
  // What of the taken entries belongs to the part whose first is `first_item`.
  kernels_cuda::Masked masked(std::int64_t first_item, std::int64_t count) {
    return {positions_.data() + first_item, values_.data() + first_item,
            velocities_.data() + first_item, count};
  }

  const Options options_;
  const core::Device device_;
  std::vector<Part> parts_;
  std::vector<float*> dense_velocities_;  // of each dense part
  core::Array<float> rest_;
  core::Array<float> velocities_before_;  // of the dense slices
  core::Array<double> squares_;
  DeviceNumbers::Scratch scratch_;

  sparse::Items taken_;  // but for its values
  core::Array<std::uint32_t> positions_;
  core::Array<float> values_;
  core::Array<float> velocities_;

  std::vector<std::vector<wire::Run>> arrived_;  // of each rank
  core::Array<std::byte> own_;
  core::Array<std::byte> messages_;  // of all ranks
  std::vector<kernels_cuda::GatheredPart> gathered_;
  core::Array<kernels_cuda::GatheredPart> d_gathered_;
  std::vector<sparse::cuda::Message> placed_;
  sparse::cuda::GatheredMean mean_;
};

CudaBucket::CudaBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories)
    : Bucket(layout),
      options_(options),
      device_(memories.device()),
      rest_(device_, shape_.dense_elements + 1),
      velocities_before_(device_, shape_.dense_elements),
      mean_(device_, layout.elements()) {
  for (const Shape::Part& part : shape_.parts) {
    parts_.push_back(
        {memories.of(part.name, part.length), memories.of(velocity_name(part.name), part.length)});
  }
  for (const Shape::DensePart& part : shape_.dense_parts) {
    dense_velocities_.push_back(memories.of(velocity_name(part.name), part.length));
  }
}

void CudaBucket::compress() {
  core::cuda::set_zero(d_flag(), sizeof(float), stream_);
  const float scale = clipping();
  accumulate(scale);
  accumulate_dense(scale);
  take_largest();
}

float CudaBucket::clipping() {
  if (options_.clip == 0) return 1.0F;
  const std::int64_t blocks =
      (grad_.elements + kernels_cuda::kSummedTogether - 1) / kernels_cuda::kSummedTogether;
  double* const d_sums = room_for(squares_, device_, blocks);
  kernels_cuda::sum_of_squares(grad_.data, grad_.dtype, grad_.elements, d_sums, stream_);
  const std::vector<double> sums = download(d_sums, blocks, stream_);
  return options_.clipping(std::accumulate(sums.begin(), sums.end(), 0.0), ranks_);
}

void CudaBucket::accumulate(float scale) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Shape::Part& part = shape_.parts[i];
    kernels_cuda::accumulate_momentum(grad_.at(part.offset), grad_.dtype, parts_[i].d_memory,
                                      parts_[i].d_velocity, part.length, options_.motion(), scale,
                                      d_flag(), stream_);
  }
}

void CudaBucket::accumulate_dense(float scale) {
  for (std::size_t i = 0; i < dense_velocities_.size(); ++i) {
    const Shape::DensePart& part = shape_.dense_parts[i];
    float* const d_numbers = rest_.data() + part.place;
    core::cuda::copy(velocities_before_.data() + part.place, dense_velocities_[i],
                     bytes_of<float>(part.length), stream_);
    elementwise::load(grad_.at(part.offset), grad_.dtype, part.length, scale, d_numbers, stream_);
    kernels_cuda::apply_momentum(d_numbers, dense_velocities_[i], part.length, options_.motion(),
                                 1.0F / static_cast<float>(ranks_), d_flag(), stream_);
  }
}

void CudaBucket::take_largest() {
  const double most_rate = options_.most_rate(step_);
  taken_ = {};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Shape::Part& part = shape_.parts[i];
    DeviceNumbers numbers(parts_[i].d_memory, part.length, scratch_, stream_);
    const std::vector<std::uint32_t> found =
        select_by_sample(numbers, std::min(part.rate, most_rate), part.keep(most_rate),
                         sample_draw(part.name, step_));
    taken_.positions.insert(taken_.positions.end(), found.begin(), found.end());
    taken_.runs.push_back({part.length, static_cast<std::int64_t>(found.size())});
  }
  const auto items = static_cast<std::int64_t>(taken_.positions.size());
  upload(taken_.positions, room_for(positions_, device_, items), stream_);
  room_for(values_, device_, items);
  room_for(velocities_, device_, items);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::int64_t count = taken_.runs[i].count;
    kernels_cuda::take_masked(parts_[i].d_memory, parts_[i].d_velocity, masked(first, count),
                              stream_);
    first += count;
  }
}

// The host has the positions, so it packs the message.
void CudaBucket::exchange(comm::Communicator& communicator) {
  if (parts_.empty()) return;
  arrived_ = exchange_counts(communicator, taken_.runs);
  taken_.values =
      download(values_.data(), static_cast<std::int64_t>(taken_.positions.size()), stream_);
  std::vector<std::byte> packed(static_cast<std::size_t>(taken_.bytes()));
  taken_.pack(packed);
  std::byte* const d_own = room_for(own_, device_, taken_.bytes());
  upload(packed, d_own, stream_);
  std::byte* const d_messages = room_for(messages_, device_, all_bytes());
  communicator.all_gather({d_own, packed.size()},
                          {d_messages, static_cast<std::size_t>(all_bytes())}, message_bytes(),
                          stream_);
}

// Where each rank's entries lie.
std::span<const sparse::cuda::Message> CudaBucket::place_messages() {
  placed_.clear();
  gathered_.clear();
  if (parts_.empty()) return {};
  const auto parts = static_cast<std::int64_t>(parts_.size());
  kernels_cuda::GatheredPart* const d_parts =
      room_for(d_gathered_, device_, parts * static_cast<std::int64_t>(arrived_.size()));
  const std::byte* d_message = messages_.data();
  for (std::size_t rank = 0; rank < arrived_.size(); ++rank) {
    std::int64_t items = 0;
    for (const wire::Run& run : arrived_[rank]) items += run.count;
    std::int64_t first_item = 0;
    std::int64_t first_byte = bytes_of<float>(items);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const wire::Run& run = arrived_[rank][i];
      gathered_.push_back({shape_.parts[i].offset, run.length, first_item, run.count, first_byte});
      first_item += run.count;
      first_byte += wire::packed_bytes(run.count, wire::offset_bits(run.length));
    }
    placed_.push_back({d_parts + static_cast<std::int64_t>(rank) * parts, parts, items, d_message});
    d_message += message_bytes()[rank];
  }
  upload(gathered_, d_parts, stream_);
  return placed_;
}

void CudaBucket::finish() {
  mean_(grad_, shape_, place_messages(), rest(), 1.0F / static_cast<float>(ranks_), stream_);
  put_back_where(mean_.d_refused());
}

void CudaBucket::put_back_where(std::int32_t* d_condition) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < taken_.runs.size(); ++i) {
    const std::int64_t count = taken_.runs[i].count;
    kernels_cuda::put_masked_back(parts_[i].d_memory, parts_[i].d_velocity, masked(first, count),
                                  d_condition, stream_);
    first += count;
  }
  for (std::size_t i = 0; i < dense_velocities_.size(); ++i) {
    const Shape::DensePart& part = shape_.dense_parts[i];
    kernels_cuda::restore_if(d_condition, velocities_before_.data() + part.place, part.length,
                             dense_velocities_[i], stream_);
  }
  core::cuda::set_zero(d_condition, sizeof(std::int32_t), stream_);
}

}  // namespace

std::unique_ptr<sparse::Bucket> make_cuda_bucket(const layout::Layout& layout,
                                                 const Options& options, MemoryStore& memories) {
  return std::make_unique<CudaBucket>(layout, options, memories);
}

}  // namespace scalecom::methods::dgc
