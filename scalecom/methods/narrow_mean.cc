#include "scalecom/methods/narrow_mean.h"

#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods {
namespace {

namespace elementwise = kernels::elementwise;

constexpr std::int64_t kBytes = 2;  // of a value on the wire

std::vector<std::int64_t> share_bytes(std::int64_t values, int size) {
  std::vector<std::int64_t> bytes;
  for (int r = 0; r < size; ++r) bytes.push_back(comm::share(values, size, r).size() * kBytes);
  return bytes;
}

template <typename T>
void make_room(core::Array<T>& array, core::Device device, std::int64_t size) {
  if (array.size() < size || array.device() != device) array = core::Array<T>(device, size);
}

}  // namespace

void NarrowMean::reserve(std::int64_t values, int rank, int ranks, core::Device device) {
  const std::int64_t owned = comm::share(values, ranks, rank).size();
  make_room(narrow_, device, values);
  make_room(arrived_, device, owned * ranks);
  make_room(rounding_, device, owned);
}

void NarrowMean::operator()(std::span<float> values, core::DType type,
                            comm::Communicator& communicator, const core::Stream& stream) {
  const int size = communicator.size();
  const auto count = static_cast<std::int64_t>(values.size());
  stream_ = stream;
  owned_ = comm::share(count, size, communicator.rank());
  const std::int64_t owned = owned_.size();
  reserve(count, communicator.rank(), size, stream.device());

  elementwise::narrow(values.data(), count, type, narrow_.data(), stream);
  const std::vector<std::int64_t> out_bytes = share_bytes(count, size);
  const std::vector<std::int64_t> in_bytes(static_cast<std::size_t>(size), owned * kBytes);
  const auto narrow = std::as_writable_bytes(std::span(narrow_.data(), values.size()));
  communicator.all_to_all(
      narrow, out_bytes,
      std::as_writable_bytes(std::span(arrived_.data(), static_cast<std::size_t>(owned * size))),
      in_bytes, stream);
  elementwise::mean_of_narrow(arrived_.data(), owned, size, type, narrow_.data() + owned_.begin,
                              rounding_.data(), stream);
  communicator.all_gather(narrow.subspan(static_cast<std::size_t>(owned_.begin * kBytes),
                                         static_cast<std::size_t>(owned * kBytes)),
                          narrow, out_bytes, stream);
  elementwise::widen(narrow_.data(), count, type, values.data(), stream);
}

std::vector<float> NarrowMean::rounding_on_host() const {
  const auto count = static_cast<std::size_t>(owned_.size());
  if (!stream_.device().is_cuda()) return {rounding_.data(), rounding_.data() + count};
  std::vector<float> here(count);
  core::cuda::copy(here.data(), rounding_.data(), static_cast<std::int64_t>(4 * count), stream_);
  core::cuda::synchronize(stream_);
  return here;
}

comm::Counters NarrowMean::cost(std::int64_t values, int size, int rank) {
  const std::int64_t owned = comm::share(values, size, rank).size();
  comm::Counters cost;
  cost[comm::Call::kAllToAll] =
      comm::one_call((values - owned) * kBytes, (size - 1) * owned * kBytes);
  cost[comm::Call::kAllGather] = comm::all_gather_traffic(owned * kBytes, values * kBytes, size);
  return cost;
}

}  // namespace scalecom::methods
