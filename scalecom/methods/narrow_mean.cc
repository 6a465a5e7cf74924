#include "scalecom/methods/narrow_mean.h"

#include <cmath>
#include <vector>

#include "scalecom/kernels/kernels.h"
#include "scalecom/methods/blocks.h"

namespace scalecom::methods {
namespace {

constexpr std::int64_t kBytes = 2;  // of a value on the wire

std::vector<std::int64_t> share_bytes(std::int64_t values, int size) {
  std::vector<std::int64_t> bytes;
  for (int r = 0; r < size; ++r) bytes.push_back(comm::share(values, size, r).size() * kBytes);
  return bytes;
}

}  // namespace

void NarrowMean::reserve(std::int64_t values, int ranks) {
  if (narrow_.size() < values) narrow_ = core::AlignedArray<std::uint16_t>(values);
  const std::int64_t owned = owned_.size();
  if (arrived_.size() < owned * ranks) arrived_ = core::AlignedArray<std::uint16_t>(owned * ranks);
  if (sum_.size() < owned) {
    sum_ = core::AlignedArray<float>(owned);
    rounding_ = core::AlignedArray<float>(owned);
  }
}

void NarrowMean::operator()(std::span<float> values, core::DType type,
                            comm::Communicator& communicator) {
  const kernels::Table& table = kernels::table();
  const int size = communicator.size();
  const auto count = static_cast<std::int64_t>(values.size());
  owned_ = comm::share(count, size, communicator.rank());
  const std::int64_t owned = owned_.size();
  reserve(count, size);

  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    table.narrow(values.data() + begin, end - begin, type, narrow_.data() + begin);
  });
  const std::vector<std::int64_t> out_bytes = share_bytes(count, size);
  const std::vector<std::int64_t> in_bytes(static_cast<std::size_t>(size), owned * kBytes);
  const auto narrow = std::as_writable_bytes(std::span(narrow_.data(), values.size()));
  communicator.all_to_all(
      narrow, out_bytes,
      std::as_writable_bytes(std::span(arrived_.data(), static_cast<std::size_t>(owned * size))),
      in_bytes);

  for_each_block(owned,
                 [&](std::int64_t begin, std::int64_t end) { sum_owned(type, size, begin, end); });
  communicator.all_gather(narrow.subspan(static_cast<std::size_t>(owned_.begin * kBytes),
                                         static_cast<std::size_t>(owned * kBytes)),
                          narrow, out_bytes);
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    table.widen(narrow_.data() + begin, end - begin, type, values.data() + begin);
  });
}

// The sum of part [begin, end) of the owned share, its mean, and what rounding the mean leaves.
void NarrowMean::sum_owned(core::DType type, int size, std::int64_t begin, std::int64_t end) {
  const kernels::Table& table = kernels::table();
  const std::int64_t owned = owned_.size();
  table.widen(arrived_.data() + begin, end - begin, type, sum_.data() + begin);
  for (int r = 1; r < size; ++r) {
    // rounding_ holds rank r's values until the rounding is known.
    table.widen(arrived_.data() + r * owned + begin, end - begin, type, rounding_.data() + begin);
    for (std::int64_t i = begin; i < end; ++i) sum_[i] += rounding_[i];
  }
  const auto ranks = static_cast<float>(size);
  for (std::int64_t i = begin; i < end; ++i) {
    const float mean = core::round_to(type, sum_[i] * (1.0F / ranks));
    rounding_[i] = std::fma(-ranks, mean, sum_[i]);
    narrow_[owned_.begin + i] = core::to_bits16(type, mean);
  }
}

comm::Counters NarrowMean::cost(std::int64_t values, int size, int rank) {
  const std::int64_t owned = comm::share(values, size, rank).size();
  comm::Counters cost;
  cost[comm::Call::kAllToAll] = {(values - owned) * kBytes, (size - 1) * owned * kBytes};
  cost[comm::Call::kAllGather] = comm::all_gather_traffic(owned * kBytes, values * kBytes, size);
  return cost;
}

}  // namespace scalecom::methods
